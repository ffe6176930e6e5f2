#include "planner/drafts/fit_moves.h"
#include "planner/drafts/move_lists.h"
#include "planner/lowering/element_state.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftOptimizerOffload(DraftSimulator& simulator) {
  const PlanningProblem& problem = simulator.problem();
  if (!HasStateOfElements(problem.profile)) return simulator.Run(KeepingDraft(problem));
  if (problem.host_step == Nanos(0)) {
    return absl::InvalidArgumentError(
        "optimizer_offload needs the time of an optimizer step on the host");
  }
  return FitMoves(simulator, KeepingDraft(problem), UpdateMoves(problem));
}

absl::StatusOr<PlannedStep> PlanOptimizerOffload(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftOptimizerOffload, "optimizer_offload");
}

}  // namespace siphon
