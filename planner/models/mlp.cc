#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/models/layers.h"
#include "planner/models/model_sizes.h"
#include "planner/models/models.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A perceptron on each token by itself: embedding, hidden layers with dropout, output. The smallest
// model that is a chain.

// The tapes follow pipeline/torch/kinds/mlp_layers.cc line by line.
LayerMemory EmbeddingMemory(const ModelOptions& options) {
  LayerTape tape;
  const auto ids = tape.TokenIds({options.sequence_length});
  return tape.Finish(tape.Embedding("tokens", ids, options.vocabulary, options.hidden));
}

LayerMemory HiddenMemory(const ModelOptions& options) {
  LayerTape tape;
  const auto input = tape.Input({options.sequence_length, options.hidden});
  const auto linear = tape.Linear("linear", input, options.hidden, options.hidden);
  const auto x = tape.Activation("activation", linear, options.activation);
  tape.Forget(linear);
  return tape.Finish(tape.Dropout("dropout", x, options.dropout));
}

LayerMemory OutputMemory(const ModelOptions& options) {
  LayerTape tape;
  const auto x = tape.Input({options.sequence_length, options.hidden});
  return tape.Finish(
      tape.CrossEntropy(tape.Linear("linear", x, options.vocabulary, options.vocabulary)));
}

LayerSpec Embedding(const ModelOptions& options) {
  LayerSpec layer{"embedding", "mlp_embedding"};
  // Unit variance going in, which the hidden layers' initial weights keep up.
  layer.parameters = {
      NormalParameter("embedding.weight", {options.vocabulary, options.hidden}, 1.0)};
  layer.outputs = HiddenStates(options);
  layer.forward_flops = options.sequence_length * options.hidden;
  layer.memory = EmbeddingMemory(options);
  return layer;
}

LayerSpec Hidden(const ModelOptions& options, int64_t index) {
  const std::string name = absl::StrCat("hidden.", index);
  // He et al. 2015, equation 10: keeps the variance through rectifiers.
  const double deviation = std::sqrt(2.0 / static_cast<double>(options.hidden));
  LayerSpec layer{name, "mlp_hidden"};
  AppendLinear(layer.parameters, name, options.hidden, options.hidden, deviation);
  layer.outputs = HiddenStates(options);
  layer.forward_flops = MatrixProductFlops(options.sequence_length, options.hidden, options.hidden);
  return layer;
}

LayerSpec Output(const ModelOptions& options) {
  LayerSpec layer{"output", "mlp_output"};
  AppendLinear(layer.parameters, "output", options.hidden, options.vocabulary);
  layer.forward_flops =
      MatrixProductFlops(options.sequence_length, options.hidden, options.vocabulary);
  layer.memory = OutputMemory(options);
  return layer;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildMlpSpec(const ModelOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckModelSizes(options, AttentionHeads::kUnused));
  return AssembleTokenModel(
      options, Objective::kNextToken, "relu",
      {.embedding = Embedding, .block = Hidden, .block_memory = HiddenMemory, .head = Output});
}

}  // namespace siphon
