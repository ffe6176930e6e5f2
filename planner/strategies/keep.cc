#include "planner/status.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/strategies.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftKeep(DraftSimulator& simulator) {
  return simulator.Run(KeepingDraft(simulator.problem()));
}

absl::StatusOr<PlannedStep> PlanKeep(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft kept, DraftKeep(simulator));
  return PlannedOf(problem, std::move(kept), "keep");
}

}  // namespace siphon
