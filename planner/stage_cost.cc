#include "planner/stage_cost.h"

#include <algorithm>

#include "planner/status.h"

namespace siphon {

Bytes SavedBytes(const LayerProfile& layer) {
  Bytes total;
  for (const SavedTensor& tensor : layer.saved) total += tensor.bytes;
  return total;
}

Bytes SavedByBoth(const LayerProfile& before, const LayerProfile& layer) {
  return std::min(before.saved_output, layer.saved_input);
}

Nanos WholeBackward(const LayerProfile& layer) {
  if (layer.whole_backward > Nanos(0)) return layer.whole_backward;
  return layer.input_backward + layer.weight_backward;
}

Nanos RecomputeTime(const LayerProfile& layer) {
  return layer.recompute > Nanos(0) ? std::min(layer.recompute, layer.forward) : layer.forward;
}

Nanos WholeBackward(const StageCost& cost) {
  if (cost.whole_backward > Nanos(0)) return cost.whole_backward;
  return cost.input_backward + cost.weight_backward;
}

std::vector<StageCost> StageCosts(const ModelProfile& profile, const StagePartition& partition) {
  std::vector<StageCost> costs;
  for (const StageRange& range : partition.stages) {
    SIPHON_CHECK(0 <= range.begin && range.begin < range.end &&
                     range.end <= static_cast<int>(profile.layers.size()),
                 "the partition is of a model with the profile's layers");
    StageCost cost;
    Nanos whole_backward;
    for (int index = range.begin; index < range.end; ++index) {
      const LayerProfile& layer = profile.layers[index];
      cost.forward += layer.forward;
      cost.input_backward += layer.input_backward;
      cost.weight_backward += layer.weight_backward;
      whole_backward += WholeBackward(layer);
      cost.step += layer.optimizer;
      cost.parameters += layer.parameters;
      cost.gradients += layer.gradients;
      cost.optimizer_state += layer.optimizer_state;
      cost.stash += SavedBytes(layer);
      if (index > range.begin) cost.stash -= SavedByBoth(profile.layers[index - 1], layer);
      cost.kept_for_weights += layer.kept_for_weights;
      // Layers run one after the other, so that the largest of them counts.
      cost.forward_workspace = std::max(cost.forward_workspace, layer.forward_workspace);
      cost.backward_workspace = std::max(cost.backward_workspace, layer.backward_workspace);
    }
    if (whole_backward != cost.input_backward + cost.weight_backward) {
      cost.whole_backward = whole_backward;
    }
    if (range.begin > 0) cost.input = profile.layers[range.begin - 1].boundary;
    if (range.end < static_cast<int>(profile.layers.size())) {
      cost.output = profile.layers[range.end - 1].boundary;
    }
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace siphon
