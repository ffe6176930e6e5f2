#include "planner/lowering/make_groups.h"

#include <algorithm>

#include "planner/status.h"

namespace siphon {
namespace {

// What the layer behind saves for both of them; nothing across stages.
Bytes SavedBehind(const ModelProfile& profile, const StageRange& stage, int layer) {
  if (layer + 1 == stage.end) return Bytes(0);
  return SavedByBoth(profile.layers[layer], profile.layers[layer + 1]);
}

TensorGroup ActivationsOf(const ModelProfile& profile, const StageRange& stage,
                          const StageRange& layers) {
  TensorGroup group{.kind = GroupKind::kActivations, .layers = layers};
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    group.bytes += SavedBytes(profile.layers[layer]) - SavedBehind(profile, stage, layer);
    // Nothing but the layer behind it takes the output of the last one, which is there already.
    group.recompute += layer + 1 < layers.end ? profile.layers[layer].forward
                                              : RecomputeTime(profile.layers[layer]);
  }
  if (layers.begin == 0) return group;
  group.input = std::min(profile.layers[layers.begin - 1].boundary, group.bytes);
  return group;
}

}  // namespace

TensorGroup GroupOf(const ModelProfile& profile, const StageRange& stage, GroupKind kind,
                    const StageRange& layers, int first_tensors) {
  SIPHON_CHECK(0 <= stage.begin && stage.begin <= layers.begin && layers.begin < layers.end &&
                   layers.end <= stage.end && stage.end <= static_cast<int>(profile.layers.size()),
               "the group's layers are in the stage, and these in the profile");
  if (first_tensors > 0) return FirstTensorsGroup(profile, layers.begin, first_tensors);
  if (kind == GroupKind::kActivations) return ActivationsOf(profile, stage, layers);
  TensorGroup group{.kind = kind, .layers = layers};
  for (int index = layers.begin; index < layers.end; ++index) {
    const LayerProfile& layer = profile.layers[index];
    group.bytes += kind == GroupKind::kGradients        ? layer.gradients
                   : kind == GroupKind::kOptimizerState ? layer.optimizer_state
                                                        : layer.parameters;
  }
  return group;
}

TensorGroup FirstTensorsGroup(const ModelProfile& profile, int layer, int first_tensors) {
  SIPHON_CHECK(0 <= layer && layer < static_cast<int>(profile.layers.size()),
               "the profile has the layer");
  const LayerProfile& costs = profile.layers[layer];
  SIPHON_CHECK(0 < first_tensors && first_tensors < static_cast<int>(costs.saved.size()),
               "the group has some of the layer's tensors, not all");
  TensorGroup group{.kind = GroupKind::kActivations,
                    .layers = {layer, layer + 1},
                    .recompute = RecomputeTime(costs, first_tensors),
                    .first_tensors = first_tensors,
                    .workspace = costs.saved[first_tensors - 1].remake_workspace};
  for (int tensor = 0; tensor < first_tensors; ++tensor) group.bytes += costs.saved[tensor].bytes;
  if (layer > 0) group.input = std::min(profile.layers[layer - 1].boundary, group.bytes);
  return group;
}

MemoryPlan KeepEverything(const ModelProfile& profile, const StagePartition& partition) {
  MemoryPlan plan;
  for (const StageRange& stage : partition.stages) {
    StagePlan& planned = plan.stages.emplace_back();
    for (int kind = 0; kind < kGroupKinds; ++kind) {
      if (static_cast<GroupKind>(kind) == GroupKind::kWeightVersions) continue;
      for (int layer = stage.begin; layer < stage.end; ++layer) {
        const TensorGroup group =
            GroupOf(profile, stage, static_cast<GroupKind>(kind), {layer, layer + 1});
        if (group.bytes > Bytes(0)) planned.groups.push_back({.group = group});
      }
    }
  }
  return plan;
}

}  // namespace siphon
