#include <utility>

#include "planner/status.h"
#include "planner/strategies/element_state.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/move_lists.h"
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
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft draft, DraftOptimizerOffload(simulator));
  return PlannedOf(problem, std::move(draft), "optimizer_offload");
}

}  // namespace siphon
