#include "planner/drafts/fit_moves.h"
#include "planner/search/swap_draft.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftNvmeSwap(DraftSimulator& simulator) {
  if (simulator.problem().topology.drives.empty()) {
    return absl::InvalidArgumentError("nvme_swap needs an NVMe drive, but the topology has none");
  }
  return FewestSwapped(
      simulator, SwapToOnePlace(simulator, KeepingDraft(simulator.problem()), Placement::kNvmeSwap),
      Placement::kNvmeSwap);
}

absl::StatusOr<SimulatedDraft> DraftNvmeSwapOrHome(DraftSimulator& simulator) {
  return Better(DraftNvmeSwap(simulator),
                FewestSwapped(simulator,
                              SwapToOnePlace(simulator, KeepingDraft(simulator.problem()),
                                             Placement::kNvmeSwap, StateBetweenSteps::kHome),
                              Placement::kNvmeSwap));
}

absl::StatusOr<PlannedStep> PlanNvmeSwap(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftNvmeSwapOrHome, "nvme_swap");
}

}  // namespace siphon
