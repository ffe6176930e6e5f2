#include "pipeline/torch/graphs/kept_layers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
KeptLayers::KeptLayers(StageRange stage) : stage_(stage), graphs_(stage.end - stage.begin) {}

absl::Status KeptLayers::CheckNotDropped(StageRange layers) const {
  if (layers.begin < stage_.begin || layers.begin >= layers.end || layers.end > stage_.end) {
    return absl::InvalidArgumentError(absl::StrCat("layers [", layers.begin, ", ", layers.end,
                                                   ") are not of this stage, which has [",
                                                   stage_.begin, ", ", stage_.end, ")"));
  }
  for (const DroppedLayers& dropped : dropped_) {
    if (!Overlap(dropped.layers, layers)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("layers [", layers.begin, ", ", layers.end, ") were dropped already"));
  }
  return absl::OkStatus();
}

absl::Status KeptLayers::Drop(const LayerTensors& tensors) {
  const StageRange& layers = tensors.layers;
  SIPHON_RETURN_IF_ERROR(CheckNotDropped(layers));
  DroppedLayers& dropped = dropped_.emplace_back();
  dropped.layers = layers;
  dropped.first = tensors.first;
  dropped.saved.resize(layers.end - layers.begin);
  return absl::OkStatus();
}

void KeptLayers::Keep(int layer, const std::vector<at::Tensor>& inputs, LayerGraph graph) {
  DroppedLayers* dropped = FindDropped(layer);
  if (dropped != nullptr && layer == dropped->layers.begin) dropped->input = inputs;
  graphs_[layer - stage_.begin] = std::move(graph);
}

DroppedLayers* KeptLayers::FindDropped(int layer) {
  for (DroppedLayers& dropped : dropped_) {
    if (layer >= dropped.layers.begin && layer < dropped.layers.end) return &dropped;
  }
  return nullptr;
}

std::optional<DroppedLayers> KeptLayers::TakeDropped(StageRange layers) {
  const auto found =
      std::find_if(dropped_.begin(), dropped_.end(),
                   [&](const DroppedLayers& dropped) { return dropped.layers == layers; });
  if (found == dropped_.end()) return std::nullopt;
  DroppedLayers taken = std::move(*found);
  dropped_.erase(found);
  return taken;
}

LayerGraph KeptLayers::TakeGraph(int layer) {
  return std::exchange(graphs_[layer - stage_.begin], LayerGraph());
}

}  // namespace siphon
