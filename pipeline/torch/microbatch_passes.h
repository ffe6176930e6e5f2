#ifndef SIPHON_PIPELINE_TORCH_MICROBATCH_PASSES_H_
#define SIPHON_PIPELINE_TORCH_MICROBATCH_PASSES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/graphs/collected_layers.h"
#include "pipeline/torch/graphs/kept_layers.h"
#include "pipeline/torch/graphs/layer_graph.h"
#include "pipeline/torch/graphs/remade_tensors.h"
#include "pipeline/torch/parameters/stage_parameters.h"
#include "pipeline/torch/stage_layers.h"
#include "planner/ids.h"
#include "planner/stage_partition.h"

namespace siphon {

// The forward and the backward pass of one microbatch through the layers of a stage, and what stays
// of the one for the other: graphs, inputs of dropped layers, weight halves. Whether a pass may run
// now is the caller's to know.
//
// Errors name the layer and the microbatch: Internal and ResourceExhausted as CallTorch,
// FailedPrecondition and InvalidArgument as StageCompute says.
class MicrobatchPasses {
 public:
  enum class Half { kBoth, kInput };

  // `layers` and `parameters` outlive this.
  MicrobatchPasses(MicrobatchId microbatch, const StageLayers* layers, StageParameters* parameters);

  // Before Forward, as StageCompute says.
  absl::Status Drop(const LayerTensors& tensors);
  absl::Status Collect(const LayerTensors& tensors);
  CollectedLayers& collected() { return collected_; }

  // From the stage's input to its output (the loss, on the last stage). `watch` may be null.
  absl::StatusOr<std::vector<at::Tensor>> Forward(std::vector<at::Tensor> input, PassWatch* watch);
  // Computes dropped layers again, up to the last tensor that their backward reads: same inputs,
  // same parameters, same keys of random numbers. InvalidArgument for a layer that saves other
  // tensors then.
  absl::Status Recompute(StageRange layers);
  // From the gradients of the output to those of the input; adds those of the parameters to the
  // sums, or keeps what they take for BackwardWeight.
  absl::StatusOr<std::vector<at::Tensor>> Backward(std::vector<at::Tensor> gradients, Half half,
                                                   PassWatch* watch);
  absl::Status BackwardWeight(PassWatch* watch);

 private:
  absl::StatusOr<std::vector<at::Tensor>> ForwardLayer(int layer, std::vector<at::Tensor> inputs);
  // Around a layer of a pass; what the pass needs of its parameters is there in between.
  absl::Status Enter(int layer, PassWatch* watch, bool gradients) const;
  static absl::Status Leave(int layer, PassWatch* watch);
  // Where a layer's forward pass leaves what its operators save; null: with LibTorch.
  SavedTensorSink* SinkOf(int layer);
  // That the forward pass of the layer has saved what was to be dropped or collected of it.
  absl::Status CheckFirstTensors(int layer);
  // A dropped layer once more; no outputs unless it is computed whole.
  absl::StatusOr<std::vector<at::Tensor>> ForwardAgain(int layer, std::vector<at::Tensor> inputs,
                                                       RemadeTensors& saved,
                                                       RemadeTensors::Extent extent);
  // What the backward of this layer takes is there after this.
  absl::Status Provide(int layer, PassWatch* watch);
  // Calls `fn` inside CallTorch.
  template <typename Fn>
  absl::Status AtLayer(int layer, Fn&& fn) const;
  std::string LayerPlace(int layer) const;

  const MicrobatchId microbatch_;
  const StageLayers* const layers_;
  StageParameters* const parameters_;
  KeptLayers kept_;
  CollectedLayers collected_;
  // Of the same layers, the last first: from the input half of their backward to the weight half.
  std::vector<LayerGraph::WeightHalf> weight_halves_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_MICROBATCH_PASSES_H_
