#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/models/layers.h"
#include "planner/models/model_sizes.h"
#include "planner/models/models.h"
#include "planner/status.h"

namespace siphon {
namespace {

// GPT-2 with the names and layouts of Hugging Face's GPT2LMHeadModel.
constexpr absl::string_view kTokenEmbedding = "transformer.wte.weight";

LayerSpec Embedding(const ModelOptions& options) {
  LayerSpec layer{"transformer.embeddings", "gpt_embedding"};
  layer.parameters = {
      NormalParameter(std::string(kTokenEmbedding), {options.vocabulary, options.hidden}),
      NormalParameter("transformer.wpe.weight", {options.sequence_length, options.hidden})};
  layer.outputs = HiddenStates(options);
  layer.forward_flops = options.sequence_length * options.hidden;
  return layer;
}

LayerSpec Block(const ModelOptions& options, int64_t index) {
  const std::string name = absl::StrCat("transformer.h.", index);
  const int64_t hidden = options.hidden;
  // Projections into the residual stream start smaller, by the number of additions to it: Radford
  // et al. 2019, 2.3.
  const double residual_deviation =
      kTransformerDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
  LayerSpec layer{name, "gpt_block"};
  AppendLayerNorm(layer.parameters, name + ".ln_1", hidden);
  AppendConv1D(layer.parameters, name + ".attn.c_attn", hidden, 3 * hidden);
  AppendConv1D(layer.parameters, name + ".attn.c_proj", hidden, hidden, residual_deviation);
  AppendLayerNorm(layer.parameters, name + ".ln_2", hidden);
  AppendConv1D(layer.parameters, name + ".mlp.c_fc", hidden, 4 * hidden);
  AppendConv1D(layer.parameters, name + ".mlp.c_proj", 4 * hidden, hidden, residual_deviation);
  layer.outputs = HiddenStates(options);
  layer.forward_flops = TransformerBlockFlops(options);
  return layer;
}

LayerSpec Head(const ModelOptions& options) {
  LayerSpec layer{"transformer.head", "gpt_head"};
  AppendLayerNorm(layer.parameters, "transformer.ln_f", options.hidden);
  layer.parameters.push_back(
      NormalParameter(options.tie_embeddings ? std::string(kTokenEmbedding) : "lm_head.weight",
                      {options.vocabulary, options.hidden}));
  layer.forward_flops =
      MatrixProductFlops(options.sequence_length, options.hidden, options.vocabulary);
  return layer;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildGptSpec(const ModelOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckModelSizes(options, AttentionHeads::kUsed));
  return AssembleTokenModel(options, Objective::kNextToken, "gelu_new",
                            {.embedding = Embedding, .block = Block, .head = Head});
}

}  // namespace siphon
