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

// The tapes follow pipeline/torch/kinds/gpt_layers.cc line by line.
LayerMemory EmbeddingMemory(const ModelOptions& options) {
  LayerTape tape;
  const auto ids = tape.TokenIds({options.sequence_length});
  const auto tokens = tape.Embedding("tokens", ids, options.vocabulary, options.hidden);
  const auto x = tape.AddParameter("positions", tokens, options.sequence_length * options.hidden);
  tape.Forget(tokens);
  return tape.Finish(TapeDropout(tape, "dropout", x, options.dropout));
}

LayerMemory BlockMemory(const ModelOptions& options) {
  const int64_t hidden = options.hidden;
  LayerTape tape;
  const auto x = tape.Input({options.sequence_length, hidden});
  const auto normed = tape.LayerNorm("norm_1", x);
  const auto qkv = tape.Named("attention.query_key_value",
                              tape.Linear("attention.qkv", normed, 3 * hidden, 3 * hidden));
  const std::vector<LayerTape::Value> parts = tape.Split(qkv, 3);
  tape.Forget(qkv);
  const auto attended =
      TapeAttention(tape, parts[0], parts[1], parts[2], options, Causality::kCausal);
  const auto projected =
      TapeDropout(tape, "attention.projection.dropout",
                  tape.Linear("attention.projection", attended, hidden, hidden), options.dropout);
  const auto middle = tape.Add(x, projected);
  tape.Forget(projected);
  const auto normed_again = tape.LayerNorm("norm_2", middle);
  const auto up = tape.Linear("perceptron.up", normed_again, 4 * hidden, 4 * hidden);
  tape.Forget(normed_again);
  const auto active = tape.Activation("perceptron.activation", up, options.activation);
  const auto down =
      TapeDropout(tape, "perceptron.down.dropout",
                  tape.Linear("perceptron.down", active, hidden, hidden), options.dropout);
  tape.Forget(active);
  return tape.Finish(tape.Add(middle, down));
}

LayerMemory HeadMemory(const ModelOptions& options) {
  LayerTape tape;
  const auto x = tape.Input({options.sequence_length, options.hidden});
  const auto normed = tape.LayerNorm("norm", x);
  const auto logits = tape.Linear("vocabulary", normed, options.vocabulary, /*bias_elements=*/0);
  tape.Forget(normed);
  return tape.Finish(tape.CrossEntropy(logits));
}

LayerSpec Embedding(const ModelOptions& options) {
  LayerSpec layer{"transformer.embeddings", "gpt_embedding"};
  layer.parameters = {
      NormalParameter(std::string(kTokenEmbedding), {options.vocabulary, options.hidden}),
      NormalParameter("transformer.wpe.weight", {options.sequence_length, options.hidden})};
  layer.outputs = HiddenStates(options);
  layer.forward_flops = options.sequence_length * options.hidden;
  layer.memory = EmbeddingMemory(options);
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
  layer.memory = HeadMemory(options);
  return layer;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildGptSpec(const ModelOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckModelSizes(options, AttentionHeads::kUsed));
  return AssembleTokenModel(
      options, Objective::kNextToken, "gelu_new",
      {.embedding = Embedding, .block = Block, .block_memory = BlockMemory, .head = Head});
}

}  // namespace siphon
