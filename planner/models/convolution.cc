#include "planner/models/convolution.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/models/layers.h"

namespace siphon {

TensorSpec ShapeOf(const FeatureMap& map) {
  return {DType::kFloat32, {map.channels, map.side, map.side}};
}

int64_t ElementsOf(const FeatureMap& map) { return map.channels * map.side * map.side; }

FeatureMap AfterConvolution(const FeatureMap& input, int64_t channels, int64_t stride) {
  return {channels, (input.side + stride - 1) / stride};
}

void AppendConvolution(std::vector<ParameterSpec>& parameters, absl::string_view prefix, int64_t in,
                       int64_t out, int64_t kernel) {
  const double fan_out = static_cast<double>(out * kernel * kernel);
  parameters.push_back(NormalParameter(absl::StrCat(prefix, ".weight"), {out, in, kernel, kernel},
                                       std::sqrt(2.0 / fan_out)));
}

void AppendClassifier(std::vector<ParameterSpec>& parameters, absl::string_view prefix, int64_t in,
                      int64_t out) {
  constexpr double kDeviation = 0.01;  // Simonyan and Zisserman 2014, 3.1
  AppendLinear(parameters, prefix, in, out, kDeviation);
}

int64_t ConvolutionFlops(const FeatureMap& output, int64_t in, int64_t kernel) {
  return MatrixProductFlops(output.side * output.side, in * kernel * kernel, output.channels);
}

SavedTensorSpec SavedInput(const TensorSpec& sample) {
  return {
      .name = "input", .sample = sample, .storage = SavedStorage::kInput, .kept_for_weights = true};
}

SavedTensorSpec SavedOutput(const TensorSpec& sample) {
  return {.name = "output", .sample = sample, .storage = SavedStorage::kOutput};
}

SavedTensorSpec SavedInside(std::string name, const TensorSpec& sample) {
  return {.name = std::move(name), .sample = sample};
}

LayerSpec MaxPool(std::string name, const FeatureMap& input, const FeatureMap& output) {
  LayerSpec layer{std::move(name), "max_pool"};
  layer.outputs = {ShapeOf(output)};
  layer.forward_flops = ElementsOf(input);  // one comparison each
  SavedTensorSpec saved_input = SavedInput(ShapeOf(input));
  saved_input.kept_for_weights = false;
  layer.memory = LayerMemory{};
  layer.memory->saved = {
      saved_input,
      SavedInside("indices", {DType::kInt64, {output.channels, output.side, output.side}})};
  layer.memory->backward = {{.per_sample = SizeOf(ShapeOf(input))}};
  return layer;
}

void DeclareBackwardWorkspace(LayerSpec& layer, const TensorSpec& a, const TensorSpec& b) {
  Bytes parameters;
  for (const ParameterSpec& parameter : layer.parameters) {
    parameters += SizeOf({DType::kFloat32, parameter.shape});
  }
  layer.memory->backward = {{.per_sample = SizeOf(a) + SizeOf(b), .fixed = parameters}};
}

ModelSpec AssembleImageModel(const ModelOptions& options, std::vector<LayerSpec> layers) {
  ModelSpec model;
  model.options = options;
  if (model.options.activation.empty()) model.options.activation = "relu";
  model.objective = Objective::kClassification;
  model.input = ShapeOf(FeatureMap{});
  model.target = {DType::kInt64, {}};
  model.classes = kImageClasses;
  model.layers = std::move(layers);
  return model;
}

}  // namespace siphon
