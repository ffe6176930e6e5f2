#ifndef SIPHON_PIPELINE_STAGE_WORKER_H_
#define SIPHON_PIPELINE_STAGE_WORKER_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/host_steps.h"
#include "pipeline/profiler_marks.h"
#include "pipeline/stage_compute.h"
#include "pipeline/state_swaps.h"
#include "pipeline/transport/transport.h"
#include "pipeline/worker_layout.h"
#include "planner/action.h"
#include "planner/memory_plan.h"
#include "planner/timeline.h"
#include "swap/swap_engine.h"

namespace siphon {

// Whether a step is made with gradients that are not all numbers. To know, all agree on the norm.
enum class OverflowRule { kUpdate, kSkip };

// How a step ends; decided by the caller, the same on all workers.
struct StepEnd {
  int64_t update = 1;
  double learning_rate = 0;
  double clip_norm = 0;  // 0: no clipping
  // What StepInputs::loss_scale is; over it the gradients are those of the losses. Where it is
  // kept up (LossScale), a step whose gradients are not all numbers changes nothing.
  float loss_scale = 1;
  OverflowRule overflow = OverflowRule::kUpdate;
};

struct StepReport {
  // Of each microbatch, ascending: on all workers after a program with REDUCE_NORM, otherwise (an
  // evaluation) on the worker of the last stage only.
  std::vector<float> losses;
  double gradient_norm = 0;  // global, before clipping; the same on all workers
  bool skipped = false;      // for gradients that are not all numbers; on all workers alike
  int peak_live_microbatches = 0;
  std::map<Placement, Bytes> swapped_out;  // bytes that left this worker, by where they went
  WorkerTimeline timeline;
};

// Executes one program strictly in order; no policy. A SEND starts and goes on, its buffer is
// released when it is done; a RECV starts; a compute action waits for what it needs, and takes it
// from a stage of its own worker by copying. The last REDUCE_GRAD of a worker exchanges the shared
// gradients of all its stages; REDUCE_NORM agrees on norm and losses. At the end of the step every
// transfer is done and no boundary buffer is live.
//
// The first error ends the step and names the action, counted from 0 ("worker 2 action 17 2F5:
// ..."); then stages and transport are in the middle of something, and every further RunStep is
// FailedPrecondition.
//
// Thread-safety: one thread.
class StageWorker {
 public:
  // Called before each action, for the outside to see where a worker is. An error ends the step
  // there.
  using ActionObserver = std::function<absl::Status(const Action&)>;

  // `stages` are those that `layout` gives to `me`. Stages, transport and engine must outlive the
  // worker; `transport` may be null when there is one worker only, `swaps` when nothing moves.
  StageWorker(WorkerId me, WorkerLayout layout, std::map<StageId, StageCompute*> stages,
              Transport* transport, SwapEngine* swaps, ActionObserver observer);

  // From now on a profiler is told of each action, as its text names it, and of what it waits for.
  void Mark(ProfilerMarks marks) { marks_ = std::move(marks); }

  // What of the stages' training state is away between steps: to be sent away before the first one,
  // and to be looked at in between.
  StateSwaps& state() { return state_; }
  // Optimizer steps on the host: to be begun behind StateSwaps::SendAway.
  HostSteps& host_steps() { return host_steps_; }

  // Runs a lowered program of one training step or one evaluation (forward only, `end` unused).
  // Errors: FailedPrecondition for a program that does not fit stages or order, Internal if
  // something is left over after the last action, and those of stages and transport.
  absl::StatusOr<StepReport> RunStep(const std::vector<Action>& program, const StepInputs& inputs,
                                     const StepEnd& end);

 private:
  WorkerId me_;
  WorkerLayout layout_;
  std::map<StageId, StageCompute*> stages_;
  Transport* transport_;
  SwapEngine* swaps_;
  StateSwaps state_;
  HostSteps host_steps_;
  ActionObserver observer_;
  ProfilerMarks marks_;
  bool failed_ = false;  // an earlier step ended in an error
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STAGE_WORKER_H_
