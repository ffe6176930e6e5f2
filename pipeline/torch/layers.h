#ifndef SIPHON_PIPELINE_TORCH_LAYERS_H_
#define SIPHON_PIPELINE_TORCH_LAYERS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/torch/aten.h"
#include "planner/memory/memory_estimate.h"
#include "planner/model_spec.h"
#include "planner/tensor_spec.h"

namespace siphon {

// What a layer may use besides its inputs; made anew for each (step, microbatch, layer).
class LayerContext {
 public:
  struct Position {
    uint64_t seed = 0;
    int64_t step = 0;
    int microbatch = 0;
    int layer = 0;
  };
  // `computed`: what the model computes in; `device`: where.
  LayerContext(const std::vector<at::Tensor>* parameters, Position position, bool training,
               at::ScalarType computed = at::kFloat, at::Device device = at::kCPU);

  // What a layer asks wrongly for is thrown, as LibTorch does.
  // The parameters in the order of LayerSpec::parameters, in the numbers that activations are in.
  const at::Tensor& Parameter(int index);
  // The same as they are held, which is what LibTorch's norms take beside 16-bit activations:
  // vectors in float32 on a CPU, in 16 bits on CUDA (HeldVectors).
  const at::Tensor& ParameterAsHeld(int index) const;
  bool training() const { return training_; }
  // Where inputs and parameters are, and whatever a layer makes besides has to be.
  at::Device device() const { return device_; }

  // A mask of zeros and 1 / (1 - probability), in the numbers that activations are in, keyed by
  // seed, step, microbatch, layer and the number of draws so far in this layer. Multiply it to what
  // is dropped. Requires: 0 < probability < 1 and training().
  at::Tensor DropoutMask(at::IntArrayRef shape, double probability);
  // x itself when not training or probability is 0, else x times a mask.
  at::Tensor Dropout(const at::Tensor& x, double probability);

 private:
  const std::vector<at::Tensor>* parameters_;
  std::vector<at::Tensor> cast_;  // [index]: of vectors that were asked for; empty in float32
  Position position_;
  bool training_;
  at::ScalarType computed_;
  at::Device device_;
  int draws_ = 0;
};

// The numbers of one layer. Inputs: the outputs of the layer before, [microbatch, ...]; the first
// layer gets the batch's input tensor, floating data in what the model computes in. Outputs must be
// as LayerSpec::outputs declares; the last layer returns the logits, [..., classes], of which the
// loss is made. Must be deterministic, draw random numbers from the context only, and not modify
// its inputs.
using LayerForward = std::function<std::vector<at::Tensor>(LayerContext& context,
                                                           const std::vector<at::Tensor>& inputs)>;

// A model that a user brings: `forward[i]` computes spec.layers[i]. spec.options may stay default.
struct Model {
  ModelSpec spec;
  std::vector<LayerForward> forward;
  DType computed = DType::kFloat32;  // what it computes in; see SetPrecision
  HeldVectors vectors = HeldVectors::kFloat32;
};

// The built-in model of these options: its spec with the LibTorch builder of each layer's kind.
absl::StatusOr<Model> BuildModel(const ModelOptions& options);
// From now on the model computes in `precision`: what was float32 between its layers is then of
// that type, and so are the parameters that they take (planner/memory/held_bytes.h).
// `vectors`: kComputed on CUDA devices.
void SetPrecision(Precision precision, HeldVectors vectors, Model& model);
// Checks a model (ValidateModelSpec, and one forward function a layer).
absl::Status ValidateModel(const Model& model);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_LAYERS_H_
