#ifndef SIPHON_PIPELINE_TORCH_KEPT_LAYERS_H_
#define SIPHON_PIPELINE_TORCH_KEPT_LAYERS_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/layer_graph.h"
#include "planner/stage_partition.h"

namespace siphon {

// Consecutive layers whose graphs are not there, and what they are made from again.
struct DroppedLayers {
  StageRange layers;
  std::vector<at::Tensor> input;  // of the first of them
};

// What the layers of a stage keep of one microbatch from its forward pass to its backward pass:
// each layer's graph or, for layers that were dropped, the input of the first of them.
//
// Layers are numbered as in the model.
class KeptLayers {
 public:
  explicit KeptLayers(StageRange stage);

  // Errors: InvalidArgument for layers outside the stage, FailedPrecondition where one of them is
  // dropped.
  absl::Status CheckNotDropped(StageRange layers) const;
  // From now on Keep takes of `layers` only the input of the first. Errors: as CheckNotDropped.
  absl::Status Drop(StageRange layers);

  // What the forward pass of a layer took in and left behind.
  void Keep(int layer, const std::vector<at::Tensor>& inputs, LayerGraph graph);

  // The layers that were dropped together with this one and have no graphs since.
  const DroppedLayers* FindDropped(int layer) const;
  // Takes out what `layers` were dropped to; Keep takes their graphs from then on.
  std::optional<DroppedLayers> TakeDropped(StageRange layers);

  // Requires: the layer has its graph, for the first time.
  LayerGraph TakeGraph(int layer);

 private:
  StageRange stage_;
  std::vector<LayerGraph> graphs_;  // [layer of the stage]; empty ones of layers that are dropped
  std::vector<DroppedLayers> dropped_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_KEPT_LAYERS_H_
