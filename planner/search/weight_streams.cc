#include "planner/search/weight_streams.h"

#include <algorithm>
#include <utility>

#include "planner/schedule.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Takes what is better with `change` made to the stages that stream, of the worker; null: of all.
template <typename Change>
absl::Status Try(DraftSimulator& simulator, const WorkerId* worker, const Change& change,
                 SimulatedDraft& best) {
  const std::vector<WorkerId>& worker_of_stage = simulator.problem().schedule.worker_of_stage;
  DraftPlan changed = best.draft;
  for (size_t stage = 0; stage < changed.stages.size(); ++stage) {
    if (worker != nullptr && worker_of_stage[stage] != *worker) continue;
    if (StreamsWeights(changed.stages[stage])) change(changed.stages[stage]);
  }
  if (changed == best.draft) return absl::OkStatus();
  return TakeIfBetter(simulator.Run(std::move(changed)), best).status();
}

absl::Status TryAll(DraftSimulator& simulator, const WorkerId* worker, SimulatedDraft& best) {
  for (int buffers = 1; buffers <= kMostStreamBuffers; ++buffers) {
    const auto change = [=](StageDraft& stage) { stage.stream_buffers = buffers; };
    SIPHON_RETURN_IF_ERROR(Try(simulator, worker, change, best));
  }
  for (int groups = 0; groups <= kMostGradientsAhead; ++groups) {
    const auto change = [=](StageDraft& stage) {
      if (StreamsGradients(stage)) stage.timing.gradients_ahead = groups;
    };
    SIPHON_RETURN_IF_ERROR(Try(simulator, worker, change, best));
  }
  return absl::OkStatus();
}

}  // namespace

bool AnySwapped(const std::vector<Placement>& layers) {
  return std::any_of(layers.begin(), layers.end(), IsSwap);
}

bool SendsWeights(const StageDraft& stage) {
  return AnySwapped(stage.parameters) || AnySwapped(stage.gradients);
}

bool SendsWeights(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(),
                     [](const StageDraft& stage) { return SendsWeights(stage); });
}

bool StreamsGradients(const StageDraft& stage) {
  return stage.weights == WeightResidence::kLayerByLayer && AnySwapped(stage.gradients);
}

bool StreamsWeights(const StageDraft& stage) {
  return stage.weights == WeightResidence::kLayerByLayer && SendsWeights(stage);
}

bool StreamsWeights(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(),
                     [](const StageDraft& stage) { return StreamsWeights(stage); });
}

bool TunesStreams(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(), [](const StageDraft& stage) {
    const bool tuned = stage.stream_buffers != kMostStreamBuffers;
    return StreamsWeights(stage) && (tuned || stage.timing.gradients_ahead > 0);
  });
}

absl::StatusOr<SimulatedDraft> BestWeightStreams(DraftSimulator& simulator, SimulatedDraft best) {
  SIPHON_RETURN_IF_ERROR(TryAll(simulator, nullptr, best));
  const int workers = WorkerCount(simulator.problem().schedule);
  for (int worker = 0; worker < workers; ++worker) {
    const WorkerId one(worker);
    SIPHON_RETURN_IF_ERROR(TryAll(simulator, &one, best));
  }
  return best;
}

}  // namespace siphon
