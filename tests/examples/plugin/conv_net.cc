// A small convolutional network as a plugin: libmine.so, which a job file names with
// `model.kind: plugin` and `model.library: libmine.so`.

#include "pipeline/torch/layers.h"
#include "pipeline/torch/plugin.h"

namespace {

using siphon::DType;
using siphon::Initializer;
using siphon::LayerContext;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kClasses = 4;

// What the planner sees: names, shapes of one sample, parameters.
siphon::ModelSpec ConvNetSpec(int64_t channels) {
  siphon::ModelSpec spec;
  spec.objective = siphon::Objective::kClassification;
  spec.input = {DType::kFloat32, {1, 16, 16}};
  spec.target = {DType::kInt64, {1}};
  spec.classes = kClasses;
  spec.layers = {
      {.name = "conv1",
       .parameters = {{"conv1.weight", {channels, 1, 3, 3}, Initializer::kNormal, 0.3},
                      {"conv1.bias", {channels}, Initializer::kZeros}},
       .outputs = {{DType::kFloat32, {channels, 16, 16}}}},
      {.name = "conv2",
       .parameters = {{"conv2.weight", {channels, channels, 3, 3}, Initializer::kNormal, 0.1},
                      {"conv2.bias", {channels}, Initializer::kZeros}},
       .outputs = {{DType::kFloat32, {channels, 8, 8}}}},
      {.name = "classifier",
       .parameters = {
           {"classifier.weight", {kClasses, channels * 8 * 8}, Initializer::kNormal, 0.03},
           {"classifier.bias", {kClasses}, Initializer::kZeros}}}};
  return spec;
}

// What LibTorch computes: one function a layer; the last one returns the logits. `options` is the
// job file's model section; here its `hidden` says how many channels there are.
absl::StatusOr<siphon::Model> BuildConvNet(const siphon::ModelOptions& options) {
  if (options.hidden > 1024) {
    return absl::InvalidArgumentError("model.hidden counts channels here; at most 1024");
  }
  const auto convolution = [](int64_t stride) {
    return [stride](LayerContext& layer, const Tensors& in) -> Tensors {
      return {at::relu(at::conv2d(in[0], layer.Parameter(0), layer.Parameter(1), stride, 1))};
    };
  };
  const auto classifier = [](LayerContext& layer, const Tensors& in) -> Tensors {
    return {at::linear(in[0].flatten(1), layer.Parameter(0), layer.Parameter(1))};
  };
  return siphon::Model{ConvNetSpec(options.hidden), {convolution(1), convolution(2), classifier}};
}

}  // namespace

SIPHON_PLUGIN(BuildConvNet)
