#ifndef SIPHON_PIPELINE_TORCH_KEPT_LAYERS_H_
#define SIPHON_PIPELINE_TORCH_KEPT_LAYERS_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/stage_compute.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/graphs/layer_graph.h"
#include "pipeline/torch/graphs/remade_tensors.h"
#include "planner/stage_partition.h"

namespace siphon {

// Consecutive layers whose saved tensors are not there, and what they are made from again.
struct DroppedLayers {
  StageRange layers;
  std::vector<at::Tensor> input;  // of the first of them
  // Only the tensors that the one layer saves first are not there, so many bytes; 0: all.
  Bytes first;
  std::vector<RemadeTensors> saved;  // [layer]
};

// What the layers of a stage keep of one microbatch from its forward pass to its backward pass:
// each layer's graph and, for layers that were dropped and whose graphs are therefore without
// tensors, the input of the first of them.
//
// Layers are numbered as in the model.
class KeptLayers {
 public:
  explicit KeptLayers(StageRange stage);

  // Errors: InvalidArgument for layers outside the stage, FailedPrecondition where one of them is
  // dropped.
  absl::Status CheckNotDropped(StageRange layers) const;
  // From now on Keep takes the input of the first of these layers too. Errors: as CheckNotDropped.
  absl::Status Drop(const LayerTensors& tensors);

  // What the forward pass of a layer took in and left behind.
  void Keep(int layer, const std::vector<at::Tensor>& inputs, LayerGraph graph);

  // The layers that were dropped together with this one; null for none. Holds until the next call
  // of Drop or TakeDropped.
  DroppedLayers* FindDropped(int layer);
  // Takes out what `layers` were dropped to: they are to be computed again.
  std::optional<DroppedLayers> TakeDropped(StageRange layers);

  // Requires: the layer's graph was kept, and not taken yet.
  LayerGraph TakeGraph(int layer);

 private:
  StageRange stage_;
  std::vector<LayerGraph> graphs_;  // [layer of the stage]
  std::vector<DroppedLayers> dropped_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_KEPT_LAYERS_H_
