#include "planner/stage_cost.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "planner/status.h"

namespace siphon {

namespace {

struct HalfWorkspaces {
  Bytes input_backward;
  Bytes weight_backward;
};

// Of a layer or a stage.
template <typename Cost>
HalfWorkspaces HalvesOf(const Cost& cost) {
  const bool known =
      cost.input_backward_workspace > Bytes(0) || cost.weight_backward_workspace > Bytes(0);
  if (!known) return {cost.backward_workspace, cost.backward_workspace};
  return {cost.input_backward_workspace, cost.weight_backward_workspace};
}

// An I comes to each layer with what those behind keep for W, and without what else they saved.
// For W, as for other passes, the largest layer counts.
void AddHalfWorkspaces(const ModelProfile& profile, const StageRange& range, StageCost& cost) {
  Bytes input_backward;
  Bytes weight_backward;
  Bytes grown;          // beyond the stash
  Bytes kept_here_too;  // of that, what the layer has saved itself
  for (int index = range.end - 1; index >= range.begin; --index) {
    const LayerProfile& layer = profile.layers[index];
    const HalfWorkspaces halves = HalvesOf(layer);
    weight_backward = std::max(weight_backward, halves.weight_backward);
    if (halves.input_backward > Bytes(0)) {
      const Bytes here = std::max(grown - kept_here_too, Bytes(0));
      input_backward = std::max(input_backward, here + halves.input_backward);
    }
    const Bytes shared =
        index > range.begin ? SavedByBoth(profile.layers[index - 1], layer) : Bytes(0);
    grown += layer.kept_for_weights + shared - SavedBytes(layer);
    kept_here_too = std::min(shared, layer.kept_for_weights);
  }
  SetHalfWorkspaces(cost, input_backward, weight_backward);
}

}  // namespace

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

Nanos RecomputeTime(const LayerProfile& layer, int first_tensors) {
  SIPHON_CHECK(0 < first_tensors && first_tensors <= static_cast<int>(layer.saved.size()),
               "the layer saves so many tensors");
  constexpr int kMillion = 1'000'000;
  const absl::int128 parts = absl::int128(RecomputeTime(layer).value) *
                             layer.saved[static_cast<size_t>(first_tensors) - 1].made_ppm;
  return Nanos(std::max<int64_t>(1, static_cast<int64_t>((parts + kMillion - 1) / kMillion)));
}

std::vector<int> FirstTensorsOf(const LayerProfile& layer) {
  std::vector<int> counts;
  for (size_t index = 1; index < layer.saved.size(); ++index) {
    if (layer.saved[index].made_ppm > layer.saved[index - 1].made_ppm) {
      counts.push_back(static_cast<int>(index));
    }
  }
  return counts;
}

Nanos WholeBackward(const StageCost& cost) {
  if (cost.whole_backward > Nanos(0)) return cost.whole_backward;
  return cost.input_backward + cost.weight_backward;
}

void SetHalfWorkspaces(StageCost& cost, Bytes input_backward, Bytes weight_backward) {
  const bool as_whole =
      input_backward == cost.backward_workspace && weight_backward == cost.backward_workspace;
  cost.input_backward_workspace = as_whole ? Bytes(0) : input_backward;
  cost.weight_backward_workspace = as_whole ? Bytes(0) : weight_backward;
}

Bytes PassWorkspace(const StageCost& cost, ActionKind pass, Bytes grown) {
  if (pass == ActionKind::kForward) return cost.forward_workspace;
  if (pass == ActionKind::kBackward) return cost.backward_workspace;
  const HalfWorkspaces halves = HalvesOf(cost);
  if (pass == ActionKind::kBackwardWeight) return halves.weight_backward;
  return std::max(halves.input_backward - std::max(grown, Bytes(0)), Bytes(0));
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
      cost.shared_parameters += layer.shared_parameters;
      cost.shared_gradients += layer.shared_gradients;
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
    AddHalfWorkspaces(profile, range, cost);
    if (range.begin > 0) cost.input = profile.layers[range.begin - 1].boundary;
    if (range.end < static_cast<int>(profile.layers.size())) {
      cost.output = profile.layers[range.end - 1].boundary;
    }
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace siphon
