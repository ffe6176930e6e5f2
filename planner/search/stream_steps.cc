#include "planner/search/stream_steps.h"

#include <algorithm>
#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/search/time_state_home.h"
#include "planner/status.h"

namespace siphon {
namespace {

int MostLayers(const DraftPlan& draft) {
  size_t most = 0;
  for (const StageDraft& stage : draft.stages) {
    most = std::max(most, stage.optimizer_state.size());
  }
  return static_cast<int>(most);
}

bool UpdatesOnHost(const StageDraft& stage) { return stage.update == UpdatePlace::kHost; }

DraftPlan Streaming(DraftPlan draft, int groups) {
  for (StageDraft& stage : draft.stages) {
    if (UpdatesOnHost(stage)) stage.groups_streamed = groups;
  }
  return draft;
}

// All stages that may step on the host do.
DraftPlan AllOnHost(const PlanningProblem& problem, const DeviceMapping& mapping) {
  DraftPlan draft = KeepingDraft(problem);
  draft.mapping = mapping;
  for (const std::vector<DraftMove>& moves : UpdateMoves(problem)) {
    for (const DraftMove& move : moves) Apply(move, draft);
  }
  for (StageDraft& stage : draft.stages) {
    stage.timing.groups_ahead = 0;
    stage.direct = DirectBackward::kDrop;
  }
  return draft;
}

// The best number of groups: one more as long as that is better than one less.
template <typename Simulate>
absl::StatusOr<SimulatedDraft> BestNumber(const DraftPlan& draft, const Simulate& simulate) {
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("nothing tried");
  for (int groups = 1; groups <= MostLayers(draft); ++groups) {
    absl::StatusOr<SimulatedDraft> next = simulate(Streaming(draft, groups));
    if (!next.ok() && !absl::IsResourceExhausted(next.status())) return next;
    if (best.ok() && (!next.ok() || !(next->score < best->score))) break;
    best = std::move(next);
  }
  return best;
}

}  // namespace

bool Streams(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(), [](const StageDraft& stage) {
    return UpdatesOnHost(stage) && stage.groups_streamed > 0;
  });
}

absl::StatusOr<SimulatedDraft> BestStreamed(DraftSimulator& simulator, const SimulatedDraft& best) {
  const PlanningProblem& problem = simulator.problem();
  absl::StatusOr<SimulatedDraft> found = absl::ResourceExhaustedError("nothing tried");
  if (!HostMayStep(problem, best.draft.mapping)) return found;
  const std::vector<StageDraft>& stages = best.draft.stages;
  if (std::any_of(stages.begin(), stages.end(), UpdatesOnHost)) {
    found = Better(std::move(found), BestNumber(best.draft, [&](DraftPlan draft) {
                     return simulator.Run(std::move(draft));
                   }));
  }
  const MoveLists again =
      ActivationMoves(problem, Placement::kRecompute, LayerOrder::kLastLayersFirst);
  const absl::StatusOr<SimulatedDraft> alike =
      BestNumber(AllOnHost(problem, best.draft.mapping),
                 [&](const DraftPlan& draft) { return FitMoves(simulator, draft, again); });
  if (!alike.ok()) return found;
  found = Better(std::move(found), alike);
  DraftPlan home = alike->draft;
  for (StageDraft& stage : home.stages) stage.timing.home_beside_host = true;
  return Better(std::move(found), TimeStateHome(simulator, std::move(home)));
}

}  // namespace siphon
