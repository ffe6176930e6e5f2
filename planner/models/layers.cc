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

LayerTape::Value TapeDropout(LayerTape& tape, const std::string& name, LayerTape::Value x,
                             double probability) {
  const LayerTape::Value dropped = tape.Dropout(name, x, probability);
  if (dropped != x) tape.Forget(x);
  return dropped;
}

namespace {

LayerTape::Value TapeWrittenOut(LayerTape& tape, LayerTape::Value query, LayerTape::Value key,
                                LayerTape::Value value, const ModelOptions& options,
                                Causality causality) {
  const int64_t sequence = options.sequence_length;
  const int64_t heads = options.heads;
  const std::vector<int64_t> split{heads, sequence, options.hidden / heads};
  const std::vector<int64_t> square{heads, sequence, sequence};
  const auto rearranged = [&](const char* name, LayerTape::Value x) {
    return tape.Named(name, tape.Copy(x, split));
  };
  const LayerTape::Value q = rearranged("attention.query", query);
  const LayerTape::Value k = rearranged("attention.key", key);
  const LayerTape::Value product = tape.MultiplyBatched("attention.scores", q, k, square);
  tape.Forget(q);
  tape.Forget(k);
  LayerTape::Value scores = tape.Scale(product);
  tape.Forget(product);
  if (causality == Causality::kCausal) {
    const LayerTape::Value scaled = scores;
    scores = tape.AddConstant(scaled, sequence * sequence);
    tape.Forget(scaled);
  }
  const LayerTape::Value probabilities = TapeDropout(
      tape, "attention.dropout", tape.Softmax("attention.softmax", scores), options.dropout);
  if (options.dropout > 0) tape.Named("attention.dropout.output", probabilities);
  const LayerTape::Value v = rearranged("attention.value", value);
  const LayerTape::Value attended = tape.MultiplyBatched("attention", probabilities, v, split);
  for (const LayerTape::Value gone : {v, scores, probabilities}) tape.Forget(gone);
  const LayerTape::Value result = tape.Copy(attended, {sequence, options.hidden});
  tape.Forget(attended);
  return result;
}

}  // namespace

LayerTape::Value TapeAttention(LayerTape& tape, LayerTape::Value query, LayerTape::Value key,
                               LayerTape::Value value, const ModelOptions& options,
                               Causality causality) {
  const bool fused = options.flash_attention && options.dropout == 0;
  return tape.Named("attention.output",
                    fused ? tape.FusedAttention("attention", query, key, value, options.heads)
                          : TapeWrittenOut(tape, query, key, value, options, causality));
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
  model.layers.push_back(layers.embedding(model.options));
  const LayerMemory block_memory = layers.block_memory(model.options);
  for (int64_t index = 0; index < options.layers; ++index) {
    model.layers.push_back(layers.block(model.options, index));
    model.layers.back().memory = block_memory;
  }
  model.layers.push_back(layers.head(model.options));
  return model;
}

}  // namespace siphon
