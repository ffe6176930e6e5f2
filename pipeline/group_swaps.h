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
    bool saved = false;   // the forward has gone through the group
    bool wanted = false;  // SWAP_OUT
  };

  absl::Status Collect(const Action& action);
  absl::Status Out(const ParkedGroup& group);
  absl::Status OutEnd(const ParkedGroup& group);
  absl::Status In(const ParkedGroup& group);
  absl::Status InEnd(const ParkedGroup& group);
  absl::Status StartOut(const ParkedGroup& group, const Leaving& leaving);
  StageCompute& ComputeOf(const ParkedGroup& group) const { return *stages_.at(group.stage); }

  const WorkerLayout& layout_;
  const std::map<StageId, StageCompute*>& stages_;
  SwapEngine* const engine_;
  StepRecorder& recorder_;
  std::map<ParkedGroup, Leaving> groups_;  // of this step
  bool ended_ = false;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_GROUP_SWAPS_H_
