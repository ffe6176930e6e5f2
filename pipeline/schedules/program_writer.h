#ifndef SIPHON_PIPELINE_SCHEDULES_PROGRAM_WRITER_H_
#define SIPHON_PIPELINE_SCHEDULES_PROGRAM_WRITER_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "planner/schedule.h"

namespace siphon {

// Writes the program of one worker. Each call takes the next microbatch of its stage, ascending, so
// that a builder only says which stage does what.
//
// A builder may go on beyond the last microbatch of the schedule: such actions are counted, and
// left out of the program.
class ProgramWriter {
 public:
  // Writes into schedule.programs[worker], which must outlive the writer.
  ProgramWriter(Schedule& schedule, int worker);

  void Forward(int stage);        // F
  void Backward(int stage);       // B
  void BackwardInput(int stage);  // I; its W waits until it is asked for

  void BackwardWeight(int stage);  // W of the oldest I of the stage that waits; none waits: nothing
  void OldestBackwardWeight();     // the same over all stages
  void AllBackwardWeights();       // every W that waits, oldest first
  size_t waiting_weights() const { return waiting_.size(); }

  // A compound cell of F and B.
  void ForwardWithBackward(int forward_stage, int backward_stage);

  void Step(int stage);    // STEP
  void Update(int stage);  // UPDATE by all backwards of the stage so far
  int forwards(int stage) const { return forwards_[stage]; }
  int backwards(int stage) const { return backwards_[stage]; }

 private:
  void Write(const Action& action);
  Action NextBackward(int stage, ActionKind kind);

  std::vector<Action>& program_;
  const int microbatches_;
  std::vector<int> forwards_;   // [stage]: microbatches gone forward
  std::vector<int> backwards_;  // [stage]: with their B or I
  std::deque<Action> waiting_;  // W of each I so far that is not written yet
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_PROGRAM_WRITER_H_
