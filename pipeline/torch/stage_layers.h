#ifndef SIPHON_PIPELINE_TORCH_STAGE_LAYERS_H_
#define SIPHON_PIPELINE_TORCH_STAGE_LAYERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/torch/graphs/layer_graph.h"
#include "pipeline/torch/layers.h"
#include "planner/stage_partition.h"

namespace siphon {

// The layers of one stage and the data of the step under way: what a pass computes, not when.
// Everything that comes in from outside, data and layers' results, is held against the model here.
//
// Thread-safety: one thread. `model` must outlive it.
class StageLayers {
 public:
  StageLayers(const Model& model, StageRange range, uint64_t seed, at::Device device = at::kCPU)
      : model_(model), range_(range), seed_(seed), device_(device) {}

  at::Device device() const { return device_; }

  int begin() const { return range_.begin; }
  int end() const { return range_.end; }
  bool IsFirst() const { return range_.begin == 0; }
  bool IsLast() const { return IsModelEnd(range_.end - 1); }
  // Whether the layer is the model's last: its pass goes on to the loss.
  bool IsModelEnd(int layer) const { return layer + 1 == static_cast<int>(Specs().size()); }
  const LayerSpec& Spec(int layer) const { return Specs()[layer]; }

  // Takes the step's data, which stays the caller's. Errors: InvalidArgument for data that the
  // model does not take; the step before stays the current one then.
  absl::Status BeginStep(const StepInputs& inputs);
  bool IsTraining() const { return inputs_.mode == StepMode::kTrain; }
  float LossScale() const { return inputs_.loss_scale; }
  int microbatches() const { return static_cast<int>(inputs_.microbatches.size()); }

  // The data of a microbatch as the first layer's input, on the device. Throws as LibTorch does.
  at::Tensor Data(MicrobatchId microbatch) const;
  // Memory for what `layer` hands to the next, of a microbatch. Throws as LibTorch does.
  std::vector<at::Tensor> EmptyOutputs(int layer, MicrobatchId microbatch) const;

  // The forward pass of one layer; of the model's last layer, to the loss. Errors: Internal for
  // what LibTorch or the layer throws, InvalidArgument for other outputs than the layer declared.
  absl::StatusOr<LayerPass> Forward(int layer, MicrobatchId microbatch,
                                    const std::vector<at::Tensor>& parameters,
                                    const std::vector<at::Tensor>& inputs) const;

 private:
  const std::vector<LayerSpec>& Specs() const { return model_.spec.layers; }
  int64_t Samples(MicrobatchId microbatch) const {
    return inputs_.microbatches[microbatch.value].input_spec.shape[0];
  }
  absl::Status CheckData(const MicrobatchData& data, int microbatch) const;
  std::vector<at::Tensor> Call(int layer, MicrobatchId microbatch,
                               const std::vector<at::Tensor>& parameters,
                               const std::vector<at::Tensor>& inputs) const;
  at::Tensor Loss(const std::vector<at::Tensor>& outputs, MicrobatchId microbatch) const;
  absl::Status CheckOutputs(int layer, int64_t samples,
                            const std::vector<at::Tensor>& outputs) const;

  const Model& model_;
  const StageRange range_;
  const uint64_t seed_;
  const at::Device device_;
  StepInputs inputs_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_STAGE_LAYERS_H_
