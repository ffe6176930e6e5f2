#include "planner/drafts/fit_moves.h"
#include "planner/search/swap_draft.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftHostSwap(DraftSimulator& simulator) {
  return FewestSwapped(
      simulator, SwapToOnePlace(simulator, KeepingDraft(simulator.problem()), Placement::kHostSwap),
      Placement::kHostSwap);
}

absl::StatusOr<SimulatedDraft> DraftHostSwapOrHome(DraftSimulator& simulator) {
  return Better(DraftHostSwap(simulator),
                FewestSwapped(simulator,
                              SwapToOnePlace(simulator, KeepingDraft(simulator.problem()),
                                             Placement::kHostSwap, StateBetweenSteps::kHome),
                              Placement::kHostSwap));
}

absl::StatusOr<PlannedStep> PlanHostSwap(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftHostSwapOrHome, "host_swap");
}

}  // namespace siphon
