#include "planner/strategies/fit_moves.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"
#include "planner/strategies/swap_draft.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftHostSwap(DraftSimulator& simulator) {
  return SwapToOnePlace(simulator, KeepingDraft(simulator.problem()), Placement::kHostSwap);
}

absl::StatusOr<SimulatedDraft> DraftHostSwapOrHome(DraftSimulator& simulator) {
  return Better(DraftHostSwap(simulator),
                SwapToOnePlace(simulator, KeepingDraft(simulator.problem()), Placement::kHostSwap,
                               StateBetweenSteps::kHome));
}

absl::StatusOr<PlannedStep> PlanHostSwap(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftHostSwapOrHome, "host_swap");
}

}  // namespace siphon
