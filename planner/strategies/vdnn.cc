#include <algorithm>

#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

// Every layer's activations go to the host, needed or not: a policy, not a search (Rhu et al.,
// MICRO 2016, vDNN-all, as "An out-of-core performance model", section 3.4, has it). A forward ends
// with all its copies out, a backward begins with the copy of its last layer in, and while it is at
// layer l, layer l-1 comes in: T_section = max(T_proc(l), T_swap(l-1)), equations 7 to 9.
//
// Two differences. vDNN waits for copies out behind each layer; a worker here does so behind each F
// of its stage. And copies in do not wait for the layer before, so that unequal layers even out;
// for that the worker has room for all of one microbatch.
DraftPlan SwapEveryLayer(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    std::fill(stage.activations.begin(), stage.activations.end(), Placement::kHostSwap);
    stage.timing = {.forwards_to_leave = 0, .actions_to_come_back = 0};
  }
  return draft;
}

}  // namespace

absl::StatusOr<SimulatedDraft> DraftVdnn(DraftSimulator& simulator) {
  return simulator.Run(SwapEveryLayer(simulator.problem()));
}

absl::StatusOr<PlannedStep> PlanVdnn(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftVdnn, "vdnn");
}

}  // namespace siphon
