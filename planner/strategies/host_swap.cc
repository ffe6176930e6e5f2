#include <utility>

#include "planner/status.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"
#include "planner/strategies/swap_as_needed.h"
#include "planner/strategies/swap_draft.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftHostSwap(DraftSimulator& simulator) {
  return SwapToOnePlace(simulator, KeepingDraft(simulator.problem()), Placement::kHostSwap);
}

absl::StatusOr<SimulatedDraft> DraftHostSwapOrHome(DraftSimulator& simulator) {
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft whole,
                          Better(DraftHostSwap(simulator),
                                 SwapToOnePlace(simulator, KeepingDraft(simulator.problem()),
                                                Placement::kHostSwap, StateBetweenSteps::kHome)));
  return SwapAsNeeded(simulator, std::move(whole), Placement::kHostSwap);
}

absl::StatusOr<PlannedStep> PlanHostSwap(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftHostSwapOrHome, "host_swap");
}

}  // namespace siphon
