#ifndef SIPHON_PIPELINE_GROUP_SWAPS_H_
#define SIPHON_PIPELINE_GROUP_SWAPS_H_

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/stage_compute.h"
#include "pipeline/step_recorder.h"
#include "pipeline/worker_layout.h"
#include "planner/action.h"
#include "swap/swap_engine.h"

namespace siphon {

// The swaps of one step of a worker, between the stages, which have the memory, and the engine,
// which moves what is in it. What the actions mean: planner/memory_plan.h.
//
// Thread-safety: one thread. The arguments outlive this; `engine` may be null when nothing moves.
// Errors: FailedPrecondition for what the program does in an impossible order, and those of stages
// and engine.
class GroupSwaps {
 public:
  GroupSwaps(const WorkerLayout& layout, const std::map<StageId, StageCompute*>& stages,
             SwapEngine* engine, StepRecorder& recorder);
  // Gives up copies under way, whose tensors go with the stages, where End was not reached.
  ~GroupSwaps();
  GroupSwaps(const GroupSwaps&) = delete;
  GroupSwaps& operator=(const GroupSwaps&) = delete;

  // Tells the stages which groups will leave. After their BeginStep, before the first action.
  absl::Status Begin(const std::vector<Action>& program);
  // SWAP_OUT, SWAP_OUT_END, SWAP_IN, SWAP_IN_END.
  absl::Status Run(const Action& action);
  // Around an F: of its groups those are gone behind it whose SWAP_OUT_END stands before it.
  void BeginForward(StageId stage, MicrobatchId microbatch);
  absl::Status EndForward();
  // Before a B or I: what is away comes in under it.
  absl::Status BeginBackward(StageId stage, MicrobatchId microbatch);
  // As PassWatch.
  absl::Status Saved(StageId stage, MicrobatchId microbatch, StageRange layers);
  absl::Status Need(StageId stage, MicrobatchId microbatch, StageRange layers);
  // Behind the last action: nothing is away.
  absl::Status End();
  // What left the worker, by where it went.
  std::map<Placement, Bytes> TakeBytesOut();

 private:
  struct Leaving {
    StageRange layers;
    bool saved = false;          // the forward has gone through the group
    bool wanted = false;         // SWAP_OUT
    bool under_forward = false;  // SWAP_OUT_END before its F
    bool coming = false;         // its way back has begun
  };

  absl::Status Collect(const Action& action);
  absl::Status Out(const ParkedGroup& group);
  absl::Status OutEnd(const ParkedGroup& group);
  absl::Status In(const ParkedGroup& group);
  absl::Status InEnd(const ParkedGroup& group);
  absl::Status StartOut(const ParkedGroup& group, const Leaving& leaving);
  // Of those that leave under the F the first ones are gone, until so many have left.
  absl::Status SendOn(size_t left);
  absl::Status StartNextIn();
  int StreamBuffers(StageId stage) const {
    return layout_.memory.stages[static_cast<size_t>(stage.value)].stream_buffers;
  }
  StageCompute& ComputeOf(const ParkedGroup& group) const { return *stages_.at(group.stage); }

  const WorkerLayout& layout_;
  const std::map<StageId, StageCompute*>& stages_;
  SwapEngine* const engine_;
  StepRecorder& recorder_;
  std::map<ParkedGroup, Leaving> groups_;  // of this step
  // Of the F that runs: its groups that have started to leave, in that order, how many of them need
  // not be waited for any more, and how many may be there at once.
  std::vector<ParkedGroup> leaving_;
  size_t left_ = 0;
  size_t most_leaving_ = 1;
  // Of the B or I that runs: what comes in under it, in the order in which it needs it, and how
  // many of these are on their way or there.
  std::vector<ParkedGroup> coming_;
  size_t came_ = 0;
  bool ended_ = false;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_GROUP_SWAPS_H_
