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

LayerSpec Embedding(const ModelOptions& options) {
  LayerSpec layer{"embedding", "mlp_embedding"};
  // Unit variance going in, which the hidden layers' initial weights keep up.
  layer.parameters = {
      NormalParameter("embedding.weight", {options.vocabulary, options.hidden}, 1.0)};
  layer.outputs = HiddenStates(options);
  layer.forward_flops = options.sequence_length * options.hidden;
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
  return layer;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildMlpSpec(const ModelOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckModelSizes(options, AttentionHeads::kUnused));
  return AssembleTokenModel(options, Objective::kNextToken, "relu",
                            {.embedding = Embedding, .block = Hidden, .head = Output});
}

}  // namespace siphon
