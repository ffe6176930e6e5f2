#ifndef SIPHON_PIPELINE_HOST_STEPS_H_
#define SIPHON_PIPELINE_HOST_STEPS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/stage_compute.h"
#include "pipeline/step_recorder.h"
#include "pipeline/worker_layout.h"
#include "planner/units.h"
#include "swap/swap_engine.h"

namespace siphon {

// The optimizer steps of one worker that the plan has on the host (UpdatePlace::kHost): gradients
// go out, the same update runs on the host's memory, new parameters come back. Optimizer state
// lives there from the begin to the end; so does a copy of each parameter and each gradient, but
// for those that are parked with the host anyway, which are worked on where they lie.
//
// Thread-safety: one thread. The arguments outlive this; `engine` may be null when no step is on
// the host. Errors: FailedPrecondition for what the program does in an impossible order, and those
// of stages and engine.
class HostSteps {
 public:
  HostSteps(const WorkerLayout& layout, const std::map<StageId, StageCompute*>& stages,
            SwapEngine* engine);
  HostSteps(const HostSteps&) = delete;
  HostSteps& operator=(const HostSteps&) = delete;

  // What of the host's memory Begin takes. 0: no step is there.
  Bytes MemoryNeeded() const;
  // Once, before the first step: optimizer state starts, and lives, in `memory` (64-byte aligned,
  // at least that large), which outlives this. What a checkpoint says is written to the stages
  // behind this and before the first step, or not at all.
  absl::Status Begin(absl::Span<std::byte> memory);

  // Whether a parameter of these layers of the stage steps here.
  bool Has(StageId stage, StageRange layers) const;
  // STEP of these layers, none of whose state is on its way (StateSwaps::NeedForStep). Gradients of
  // the stage's other layers leave meanwhile, where nothing of theirs moves otherwise. The time
  // until the host is through is written down as a wait. New parameters are on their way after
  // this.
  absl::Status Step(StageId stage, StageRange layers, const UpdateSettings& settings,
                    StepRecorder& recorder);
  // Those of the stage are there. Nothing to do where none are on their way.
  absl::Status Await(StageId stage, StepRecorder& recorder);
  // Behind the last action: all are.
  absl::Status EndStep(StepRecorder& recorder);

 private:
  // Where it is in a group that is parked with the host.
  struct InGroup {
    GroupId group;
    size_t tensor = 0;  // counted in the group
  };
  // A parameter, or its gradient, on the host.
  struct OnHost {
    absl::Span<std::byte> own;
    std::optional<InGroup> parked;  // then there is no `own`
  };
  struct Parameter {
    int layer = 0;
    bool steps_here = false;  // else on the device, and there is nothing of it here
    bool is_home = false;     // it and its gradient stay where they are but for STEP's copies
    OnHost value, gradient;
    bool fresh = false;     // value's `own` is what the parameter is
    bool has_left = false;  // in this step, or is on its way
  };
  // Gradients of some layers on their way out.
  struct Leaving {
    StageRange layers;
    CopyEvent event;
  };

  std::vector<Parameter> ParametersOf(StageId stage) const;
  // Gradients of these layers that have not left yet, and parameters that the host does not know.
  // `tensors`: StepTensors of the stage.
  absl::Status StartOut(StageId stage, StageRange layers, const std::vector<StepTensor>& tensors);
  absl::Status AwaitOut(StageId stage, StageRange layers);
  absl::StatusOr<absl::Span<std::byte>> MemoryOf(StageId stage, const OnHost& what) const;
  absl::Status NoteChanges(StageId stage, StageRange layers);

  const WorkerLayout& layout_;
  const std::map<StageId, StageCompute*>& stages_;
  SwapEngine* const engine_;
  std::map<StageId, std::vector<Parameter>> steps_;  // [place in StageCompute::StepTensors]
  std::map<StageId, std::vector<Leaving>> leaving_;
  std::map<StageId, std::vector<CopyEvent>> arriving_;  // new parameters
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_HOST_STEPS_H_
