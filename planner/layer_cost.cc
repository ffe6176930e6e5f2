#include "planner/layer_cost.h"

#include "planner/status.h"

namespace siphon {

Nanos WholeBackward(const LayerCost& layer) {
  if (layer.whole_backward > Nanos(0)) return layer.whole_backward;
  return layer.input_backward + layer.weight_backward;
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
                       .whole_backward = layer.whole_backward});
    }
  }
  return costs;
}

}  // namespace siphon
