#ifndef SIPHON_PLANNER_SIMULATOR_STEP_BOUNDARIES_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_BOUNDARIES_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/schedule_index.h"
#include "planner/simulator/graph/step_writer.h"

namespace siphon {

// Which way a tensor crosses the boundary between two stages: outputs to the next, gradients to the
// previous one.
enum class BoundaryFlow { kForward, kBackward };

// The tensors between stages: made, sent, received and used.
class StepBoundaries {
 public:
  // Both must outlive this.
  StepBoundaries(const ScheduleIndex& index, StepWriter& writer);

  // Before the first task of the action that is being written: the worker's own copy of what comes
  // in at its stage. kNone where workers copy nothing.
  int CopyIn(BoundaryFlow flow);
  // The action being written runs from task `first` to task `last`, takes what came in at its
  // stage, and makes what goes out. A compute-only schedule sends it at once. Errors:
  // InvalidArgument when there is no path.
  absl::Status PassOn(BoundaryFlow flow, int first, int last);
  // SEND. Errors: FailedPrecondition, or InvalidArgument when there is no path.
  absl::Status Send(BoundaryFlow flow);
  // RECV: posts the buffer.
  void Receive(BoundaryFlow flow);
  // All tasks of the action are written: what the worker then must be rid of goes.
  void EndAction();

  // Ties all users to what they need, once all programs are written. Errors: FailedPrecondition,
  // with the grid, when that is not in the schedule or comes too late.
  absl::Status Connect();

 private:
  static constexpr int kNone = StepWriter::kNone;

  // The tasks of one (replica, stage, microbatch, flow).
  struct Crossing {
    int user = kNone;     // first task of the action that needs what comes in
    int maker = kNone;    // last task of the action that makes what goes out
    int message = kNone;  // that brings what comes in
    int posted = kNone;   // task behind which the buffer for it is there
    // The crossing, in crossings_, whose buffer must be there before this message goes; kNone: it
    // goes at once.
    int waits_for = kNone;
  };

  size_t IndexOf(int replica, StageId stage, MicrobatchId microbatch, BoundaryFlow flow) const;
  Crossing& At(int replica, StageId stage, MicrobatchId microbatch, BoundaryFlow flow);
  bool Exists(StageId stage) const;
  int WorkerOf(StageId stage) const { return schedule_.worker_of_stage[stage.value].value; }
  bool HeldUntilTaken() const { return !freed_behind_.empty(); }
  // The tensors of the action that is being written, from task `first` to task `last`.
  void Book(BoundaryFlow flow, int first, int last);
  Nanos CopyTime(Bytes bytes) const;
  Bytes Incoming(StageId stage, BoundaryFlow flow) const;
  Bytes Outgoing(StageId stage, BoundaryFlow flow) const;

  absl::Status Connect(int replica, StageId stage, MicrobatchId microbatch, BoundaryFlow flow);
  Action UserOf(StageId stage, MicrobatchId microbatch, BoundaryFlow flow) const;
  absl::Status Missing(const Action& action, StageId holder_stage, const Action& missing) const;
  absl::Status NothingComes(StageId stage, MicrobatchId microbatch, BoundaryFlow flow) const;
  absl::Status CheckReceiveOrder(StageId stage, MicrobatchId microbatch, BoundaryFlow flow) const;

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  StepWriter& writer_;
  bool lowered_ = false;
  std::vector<Crossing> crossings_;  // [replica, stage, microbatch, flow]
  // Of each message lane the crossings in the order in which they are sent.
  std::map<LaneId, std::vector<size_t>> sent_;
  // MessagesHeld; empty with SentMemory::kUntilSent.
  std::vector<std::vector<int>> freed_behind_;
  std::map<int, Bytes> freed_;  // of the program that is being written: by place, at its end
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_BOUNDARIES_H_
