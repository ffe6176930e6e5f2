#include "planner/drafts/weight_moves.h"

#include <algorithm>
#include <cstdlib>

namespace siphon {
namespace {

Bytes BytesOf(const LayerProfile& layer, GroupKind kind) {
  return kind == GroupKind::kParameters  ? layer.parameters
         : kind == GroupKind::kGradients ? layer.gradients
                                         : layer.optimizer_state;
}

std::vector<WorkerLayer> Spread(const std::vector<WorkerLayer>& layers) {
  std::vector<WorkerLayer> order;
  const auto count = static_cast<int>(layers.size());
  std::vector<bool> is_end(layers.size());
  // To the nearest layer taken, or end of its stage; -1: taken.
  std::vector<int> room(layers.size());
  for (int layer = 0; layer < count; ++layer) {
    int first = layer;
    int last = layer;
    while (first > 0 && layers[first - 1].stage == layers[layer].stage) --first;
    while (last + 1 < count && layers[last + 1].stage == layers[layer].stage) ++last;
    is_end[layer] = layer == first || layer == last;
    room[layer] = 1 + std::min(layer - first, last - layer);
  }
  for (int taken = 0; taken < count; ++taken) {
    int next = 0;
    for (int layer = 1; layer < count; ++layer) {
      const bool better =
          room[layer] != room[next] ? room[layer] > room[next] : is_end[next] && !is_end[layer];
      if (better) next = layer;
    }
    order.push_back(layers[next]);
    for (int layer = 0; layer < count; ++layer) {
      if (layers[layer].stage != layers[next].stage) continue;
      room[layer] = std::min(room[layer], std::abs(layer - next));
    }
    room[next] = -1;
  }
  return order;
}

}  // namespace

std::vector<WorkerLayer> StreamableLayers(const PlanningProblem& problem, WorkerId worker) {
  std::vector<WorkerLayer> layers;
  for (const StageId stage : StagesOf(problem.schedule, worker)) {
    if (!CanStream(problem, stage)) continue;
    const StageRange& range = problem.partition.stages[stage.value];
    for (int layer = range.begin; layer < range.end; ++layer) {
      layers.push_back({stage.value, layer - range.begin, &problem.profile.layers[layer]});
    }
  }
  return layers;
}

std::vector<std::vector<WorkerLayer>> SpreadLayers(const PlanningProblem& problem) {
  std::vector<std::vector<WorkerLayer>> lists;
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    lists.push_back(Spread(StreamableLayers(problem, WorkerId(worker))));
  }
  return lists;
}

MoveLists MovesOf(const std::vector<std::vector<WorkerLayer>>& layers, GroupKind kind,
                  Placement to) {
  MoveLists lists;
  for (const std::vector<WorkerLayer>& ordered : layers) {
    std::vector<DraftMove>& moves = lists.emplace_back();
    for (const WorkerLayer& layer : ordered) {
      if (BytesOf(*layer.profile, kind) == Bytes(0)) continue;
      moves.push_back({.stage = layer.stage, .kind = kind, .layer = layer.layer, .to = to});
    }
  }
  return lists;
}

DraftPlan StreamingDraft(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) stage.timing = {.groups_ahead = 0};
  return draft;
}

}  // namespace siphon
