#include <cstddef>
#include <utility>
#include <vector>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/move_lists.h"
#include "planner/status.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

// Copies in that begin at most so many actions before their backward.
constexpr int kMostActionsAhead = 3;

// Copies out and in with as much time as each worker has room for: first the copies out may last
// until the next forward, then copies in begin earlier, action by action. All workers try at once;
// those that get too full stay as they were. What all of them found is tried together in the end.
// Requires: `fitted` fits.
absl::StatusOr<SimulatedDraft> GiveCopiesTime(DraftSimulator& simulator, SimulatedDraft fitted) {
  const std::vector<WorkerId>& workers = simulator.problem().schedule.worker_of_stage;
  DraftPlan best = fitted.draft;
  std::vector<bool> stays(fitted.excess.size(), false);
  for (int ahead = 0; ahead <= kMostActionsAhead; ++ahead) {
    DraftPlan draft = best;
    for (size_t stage = 0; stage < draft.stages.size(); ++stage) {
      SwapTiming& timing = draft.stages[stage].timing;
      if (stays[workers[stage].value]) continue;
      if (ahead == 0) timing.forwards_to_leave = 1;
      timing.actions_to_come_back = ahead;
    }
    SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft tried, simulator.Run(draft));
    for (size_t stage = 0; stage < draft.stages.size(); ++stage) {
      const int worker = workers[stage].value;
      if (tried.excess[worker] == Bytes(0)) {
        best.stages[stage].timing = draft.stages[stage].timing;
      } else if (ahead > 0) {
        stays[worker] = true;
      }
    }
    if (Fits(tried) && tried.score < fitted.score) fitted = tried;
  }
  return Better(std::move(fitted), simulator.Run(std::move(best)));
}

}  // namespace

// "An out-of-core performance model", section 3.5 and Figure 4: activations are swapped only as far
// as capacity demands, those of the earliest layers first, which are needed last; the others are
// there when the backward begins. What is away comes in as soon as there is room.
absl::StatusOr<SimulatedDraft> DraftCapacityBased(DraftSimulator& simulator) {
  const PlanningProblem& problem = simulator.problem();
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    stage.timing = {.forwards_to_leave = 0, .actions_to_come_back = 0};
  }
  SIPHON_ASSIGN_OR_RETURN(
      SimulatedDraft fitted,
      FitMoves(simulator, draft,
               ActivationMoves(problem, Placement::kHostSwap, LayerOrder::kFirstLayersFirst)));
  const bool swaps = Uses(fitted.draft, Placement::kHostSwap);
  return Fits(fitted) && swaps ? GiveCopiesTime(simulator, std::move(fitted)) : std::move(fitted);
}

absl::StatusOr<PlannedStep> PlanCapacityBased(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftCapacityBased, "capacity_based");
}

}  // namespace siphon
