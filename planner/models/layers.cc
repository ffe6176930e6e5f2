#include "planner/models/layers.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace siphon {

ParameterSpec NormalParameter(std::string name, std::vector<int64_t> shape,
                              double standard_deviation) {
  return {std::move(name), std::move(shape), Initializer::kNormal, standard_deviation};
}

ParameterSpec ZeroParameter(std::string name, std::vector<int64_t> shape) {
  return {std::move(name), std::move(shape), Initializer::kZeros, 0.0};
}

void AppendLinear(std::vector<ParameterSpec>& parameters, absl::string_view prefix, int64_t in,
                  int64_t out, double standard_deviation) {
  parameters.push_back(
      NormalParameter(absl::StrCat(prefix, ".weight"), {out, in}, standard_deviation));
  parameters.push_back(ZeroParameter(absl::StrCat(prefix, ".bias"), {out}));
}

void AppendConv1D(std::vector<ParameterSpec>& parameters, absl::string_view prefix, int64_t in,
                  int64_t out, double standard_deviation) {
  parameters.push_back(
      NormalParameter(absl::StrCat(prefix, ".weight"), {in, out}, standard_deviation));
  parameters.push_back(ZeroParameter(absl::StrCat(prefix, ".bias"), {out}));
}

void AppendLayerNorm(std::vector<ParameterSpec>& parameters, absl::string_view prefix,
                     int64_t width) {
  parameters.push_back({absl::StrCat(prefix, ".weight"), {width}, Initializer::kOnes, 0.0});
  parameters.push_back(ZeroParameter(absl::StrCat(prefix, ".bias"), {width}));
}

int64_t MatrixProductFlops(int64_t rows, int64_t inner, int64_t columns) {
  return 2 * rows * inner * columns;
}

int64_t TransformerBlockFlops(const ModelOptions& options) {
  const int64_t sequence = options.sequence_length;
  const int64_t hidden = options.hidden;
  const int64_t query_key_value = MatrixProductFlops(sequence, hidden, 3 * hidden);
  const int64_t scores = MatrixProductFlops(sequence, hidden, sequence);
  const int64_t weighted_values = MatrixProductFlops(sequence, sequence, hidden);
  const int64_t projection = MatrixProductFlops(sequence, hidden, hidden);
  const int64_t perceptron = 2 * MatrixProductFlops(sequence, hidden, 4 * hidden);
  return query_key_value + scores + weighted_values + projection + perceptron;
}

std::vector<TensorSpec> HiddenStates(const ModelOptions& options) {
  return {{DType::kFloat32, {options.sequence_length, options.hidden}}};
}

TensorSpec TokenSequence(const ModelOptions& options) {
  return {DType::kInt64, {options.sequence_length}};
}

ModelSpec AssembleTokenModel(const ModelOptions& options, Objective objective,
                             absl::string_view default_activation, const TokenModelLayers& layers) {
  ModelSpec model;
  model.options = options;
  if (options.activation.empty()) model.options.activation = std::string(default_activation);
  model.objective = objective;
  model.input = TokenSequence(options);
  model.target = TokenSequence(options);
  model.classes = options.vocabulary;
  model.layers.push_back(layers.embedding(options));
  for (int64_t index = 0; index < options.layers; ++index) {
    model.layers.push_back(layers.block(options, index));
  }
  model.layers.push_back(layers.head(options));
  return model;
}

}  // namespace siphon
