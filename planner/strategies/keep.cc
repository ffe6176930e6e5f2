#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftKeep(DraftSimulator& simulator) {
  return simulator.Run(KeepingDraft(simulator.problem()));
}

absl::StatusOr<PlannedStep> PlanKeep(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftKeep, "keep");
}

}  // namespace siphon
