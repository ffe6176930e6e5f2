#include <utility>

#include "planner/status.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/second_choices.h"
#include "planner/strategies/strategies.h"
#include "planner/strategies/swap_draft.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftNvmeSwap(DraftSimulator& simulator) {
  if (simulator.problem().topology.drives.empty()) {
    return absl::InvalidArgumentError("nvme_swap needs an NVMe drive, but the topology has none");
  }
  return SwapToOnePlace(simulator, KeepingDraft(simulator.problem()), Placement::kNvmeSwap);
}

absl::StatusOr<PlannedStep> PlanNvmeSwap(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft draft,
                          Better(DraftNvmeSwap(simulator),
                                 SwapToOnePlace(simulator, KeepingDraft(problem),
                                                Placement::kNvmeSwap, StateBetweenSteps::kHome)));
  return PlannedWithSecondChoices(simulator, std::move(draft), "nvme_swap");
}

}  // namespace siphon
