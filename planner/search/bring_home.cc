#include "planner/search/bring_home.h"

#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/move_lists.h"
#include "planner/search/state_home.h"
#include "planner/search/time_state_home.h"
#include "planner/status.h"

namespace siphon {
namespace {

// The draft, of which others can bring state home that steps on the host. Beside that, stages that
// step on the device have at home what they say.
DraftPlan AllowHome(DraftPlan draft) {
  for (StageDraft& stage : draft.stages) {
    if (stage.update == UpdatePlace::kHost) {
      stage.timing.groups_away_between_steps = SwapTiming::kAllGroups;
    }
    stage.timing.home_beside_host = true;
  }
  return draft;
}

bool IsFaster(const SimulatedDraft& draft, const SimulatedDraft& than) {
  return draft.score.excess <= than.score.excess && draft.score.step < than.score.step;
}

// A layer more of the stage, as long as that shortens the step.
absl::StatusOr<SimulatedDraft> BringStageHome(DraftSimulator& simulator, SimulatedDraft best,
                                              StageId stage) {
  int away = StateAwayBetweenSteps(best.draft.stages[stage.value]);
  while (away > 0) {
    DraftPlan draft = best.draft;
    draft.stages[stage.value].timing.groups_away_between_steps = --away;
    SIPHON_ASSIGN_OR_RETURN(SimulatedDraft tried,
                            TimeStagesHome(simulator, std::move(draft), {stage}));
    if (!IsFaster(tried, best)) break;
    best = std::move(tried);
  }
  return best;
}

absl::StatusOr<SimulatedDraft> BringLayersHome(DraftSimulator& simulator, DraftPlan draft) {
  const Schedule& schedule = simulator.problem().schedule;
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft best, simulator.Run(std::move(draft)));
  for (int worker = WorkerCount(schedule) - 1; worker >= 0; --worker) {
    for (const StageId stage : StagesOf(schedule, WorkerId(worker))) {
      if (best.draft.stages[stage.value].update != UpdatePlace::kHost) continue;
      SIPHON_ASSIGN_OR_RETURN(best, BringStageHome(simulator, std::move(best), stage));
    }
  }
  return best;
}

// All state away or with the host, and as many layers computed again as that takes.
absl::StatusOr<SimulatedDraft> AllStateOnHost(DraftSimulator& simulator,
                                              const DeviceMapping& mapping) {
  const PlanningProblem& problem = simulator.problem();
  DraftPlan draft = KeepingDraft(problem);
  draft.mapping = mapping;
  for (StageDraft& stage : draft.stages) {
    stage.timing.groups_ahead = 0;
    stage.direct = DirectBackward::kDrop;
  }
  for (const std::vector<DraftMove>& moves : UpdateMoves(problem)) {
    for (const DraftMove& move : moves) Apply(move, draft);
  }
  return FitMoves(simulator, draft,
                  ActivationMoves(problem, Placement::kRecompute, LayerOrder::kLastLayersFirst));
}

}  // namespace

absl::StatusOr<SimulatedDraft> BestBroughtHome(DraftSimulator& simulator,
                                               const SimulatedDraft& best) {
  absl::StatusOr<SimulatedDraft> found = absl::ResourceExhaustedError("nothing tried");
  if (!AnyStageStepsOnHost(best.draft)) return found;
  const DraftPlan start = AllowHome(best.draft);
  found = Better(std::move(found), BringLayersHome(simulator, start));
  found = Better(std::move(found), TimeStateHome(simulator, start));
  found = Better(std::move(found), SpreadStateHome(simulator, start));
  const absl::StatusOr<SimulatedDraft> all = AllStateOnHost(simulator, best.draft.mapping);
  if (!all.ok()) return found;
  return Better(std::move(found), TimeStateHome(simulator, AllowHome(all->draft)));
}

}  // namespace siphon
