#include "planner/layer_cost.h"

#include <algorithm>
#include <cstddef>

#include "planner/status.h"

namespace siphon {
namespace {

// The tensor that both layers save is the second one's, and what the first one's backward frees, as
// the last to use it. What W needs of it stays there, and is not counted twice before that
// backward.
void ShareBoundary(Bytes saved_by_both, LayerCost& before, LayerCost& layer) {
  const Bytes kept = std::min(saved_by_both, layer.kept_for_weights);
  before.stash -= saved_by_both;
  layer.shared_before = saved_by_both;
  layer.kept_for_weights -= kept;
  before.kept_for_weights += kept;
}

}  // namespace

Nanos WholeBackward(const LayerCost& layer) {
  if (layer.whole_backward > Nanos(0)) return layer.whole_backward;
  return layer.input_backward + layer.weight_backward;
}

Nanos RecomputeTime(const LayerCost& layer) {
  return layer.recompute > Nanos(0) ? std::min(layer.recompute, layer.forward) : layer.forward;
}

Bytes FreedByBackward(const std::vector<LayerCost>& stage, int layer) {
  const Bytes freed = stage[layer].stash - stage[layer].shared_before;
  const auto behind = static_cast<size_t>(layer) + 1;
  return behind < stage.size() ? freed + stage[behind].shared_before : freed;
}

std::vector<std::vector<LayerCost>> LayerCosts(const ModelProfile& profile,
                                               const StagePartition& partition) {
  std::vector<std::vector<LayerCost>> costs;
  for (const StageRange& range : partition.stages) {
    SIPHON_CHECK(0 <= range.begin && range.begin < range.end &&
                     range.end <= static_cast<int>(profile.layers.size()),
                 "the partition is of a model with the profile's layers");
    std::vector<LayerCost>& stage = costs.emplace_back();
    for (int index = range.begin; index < range.end; ++index) {
      const LayerProfile& layer = profile.layers[index];
      stage.push_back({.forward = layer.forward,
                       .input_backward = layer.input_backward,
                       .weight_backward = layer.weight_backward,
                       .stash = SavedBytes(layer),
                       .kept_for_weights = layer.kept_for_weights,
                       .whole_backward = layer.whole_backward,
                       .optimizer = layer.optimizer,
                       .recompute = layer.recompute});
      if (index == range.begin) continue;
      const Bytes saved_by_both = SavedByBoth(profile.layers[index - 1], layer);
      ShareBoundary(saved_by_both, stage[stage.size() - 2], stage.back());
    }
  }
  return costs;
}

}  // namespace siphon
