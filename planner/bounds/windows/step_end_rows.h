#ifndef SIPHON_PLANNER_BOUNDS_STEP_END_ROWS_H_
#define SIPHON_PLANNER_BOUNDS_STEP_END_ROWS_H_

#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/windows/program_rows.h"
#include "planner/bounds/windows/standing_terms.h"
#include "planner/bounds/windows/window_program.h"

namespace siphon {

// The rows of the step's end: what may move, and what the host may step, only behind a worker's
// last backward.
class StepEndRows {
 public:
  // All must outlive this. `standing` [worker] is read when rows are added.
  StepEndRows(const BoundFacts& facts, const std::vector<StandingTerms>& standing,
              WindowProgram& made, ProgramRows& rows);

  // The worker's step behind its last backward. `last_segment` is the column of its last segment's
  // length, `last_recompute` what is computed again of its last window, in time.
  void AddWorker(const WindowedWorker& windowed, int last_segment,
                 const LinearTerms& last_recompute);
  // Steps that cannot begin before one worker's last backward, or before a time. Behind AddWorker
  // for all workers.
  void AddJoint();

 private:
  // What is away when all the worker's backwards are through and nothing has stepped yet: the
  // worker holds all its weights and state but for that. State that is away then, and was not left
  // to the host, comes in behind it, and so do parameters and gradients, but for those that the
  // host steps with.
  void AddBegin(int worker);
  // All workers at once, where no STEP begins before the last backward of any: what is with lenders
  // then is in the devices' memory, too.
  void AddBeginOfAll();
  // The same when the step begins, and ends.
  void AddBetweenSteps();
  // Columns of `away` that come in: all of it but `most` bytes a byte that the host steps.
  LinearTerms ComingIn(const LinearTerms& away, double most, int stepped);
  // The host takes one step after the other: those of `workers` need what `time` has.
  void AddHostTime(int time, const std::vector<int>& workers, int cause);
  void AddStepsWithin(int time, const std::vector<int>& workers, int cause);

  const BoundFacts& facts_;
  const std::vector<StandingTerms>& standing_;
  WindowProgram& made_;
  ProgramRows& rows_;
  struct Begin {
    LinearTerms away;
    LinearTerms host;  // of it, with the host
    LinearTerms link_in, uplink_in;
  };
  std::vector<Begin> begins_;  // [worker]
  static constexpr int kNoStep = -1;
  std::vector<int> steps_;  // [worker], columns: from its last backward to the end of the step
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_STEP_END_ROWS_H_
