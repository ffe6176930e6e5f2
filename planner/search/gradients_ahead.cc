#include "planner/search/gradients_ahead.h"

#include <algorithm>
#include <utility>

#include "planner/schedule.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Of the worker; null: of all.
absl::Status Try(DraftSimulator& simulator, const WorkerId* worker, int groups,
                 SimulatedDraft& best) {
  const std::vector<WorkerId>& worker_of_stage = simulator.problem().schedule.worker_of_stage;
  DraftPlan changed = best.draft;
  for (size_t stage = 0; stage < changed.stages.size(); ++stage) {
    if (worker != nullptr && worker_of_stage[stage] != *worker) continue;
    if (!StreamsGradients(changed.stages[stage])) continue;
    changed.stages[stage].timing.gradients_ahead = groups;
  }
  if (changed == best.draft) return absl::OkStatus();
  return TakeIfBetter(simulator.Run(std::move(changed)), best).status();
}

}  // namespace

bool StreamsGradients(const StageDraft& stage) {
  return stage.weights == WeightResidence::kLayerByLayer &&
         std::any_of(stage.gradients.begin(), stage.gradients.end(), IsSwap);
}

bool StreamsGradients(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(),
                     [](const StageDraft& stage) { return StreamsGradients(stage); });
}

absl::StatusOr<SimulatedDraft> BestWithGradientsAhead(DraftSimulator& simulator,
                                                      SimulatedDraft best) {
  for (int groups = 0; groups <= kMostGradientsAhead; ++groups) {
    SIPHON_RETURN_IF_ERROR(Try(simulator, nullptr, groups, best));
  }
  const int workers = WorkerCount(simulator.problem().schedule);
  for (int worker = 0; worker < workers; ++worker) {
    const WorkerId one(worker);
    for (int groups = 0; groups <= kMostGradientsAhead; ++groups) {
      SIPHON_RETURN_IF_ERROR(Try(simulator, &one, groups, best));
    }
  }
  return best;
}

}  // namespace siphon
