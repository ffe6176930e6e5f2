#include <utility>

#include "planner/status.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/second_choices.h"
#include "planner/strategies/strategies.h"
#include "planner/strategies/swap_draft.h"

namespace siphon {

absl::StatusOr<SimulatedDraft> DraftHostSwap(DraftSimulator& simulator) {
  return SwapToOnePlace(simulator, KeepingDraft(simulator.problem()), Placement::kHostSwap);
}

absl::StatusOr<PlannedStep> PlanHostSwap(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft draft,
                          Better(DraftHostSwap(simulator),
                                 SwapToOnePlace(simulator, KeepingDraft(problem),
                                                Placement::kHostSwap, StateBetweenSteps::kHome)));
  return PlannedWithSecondChoices(simulator, std::move(draft), "host_swap");
}

}  // namespace siphon
