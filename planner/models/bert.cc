#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/models/layers.h"
#include "planner/models/model_sizes.h"
#include "planner/models/models.h"
#include "planner/status.h"

namespace siphon {
namespace {

// BERT with the names and layouts of Hugging Face's BertForMaskedLM.
constexpr absl::string_view kWordEmbedding = "bert.embeddings.word_embeddings.weight";
constexpr int64_t kTokenTypes = 2;

// The tapes follow pipeline/torch/kinds/bert_layers.cc line by line.
LayerMemory EmbeddingMemory(const ModelOptions& options) {
  const int64_t hidden = options.hidden;
  LayerTape tape;
  const auto ids = tape.TokenIds({options.sequence_length});
  const auto words = tape.Embedding("words", ids, options.vocabulary, hidden);
  const auto typed = tape.AddParameter("token_types", words, kTokenTypes * hidden);
  tape.Forget(words);
  const auto placed = tape.AddParameter("positions", typed, options.sequence_length * hidden);
  const auto normed = tape.LayerNorm("norm", placed);
  tape.Forget(typed);
  tape.Forget(placed);
  return tape.Finish(TapeDropout(tape, "dropout", normed, options.dropout));
}

LayerMemory BlockMemory(const ModelOptions& options) {
  const int64_t hidden = options.hidden;
  LayerTape tape;
  const auto x = tape.Input({options.sequence_length, hidden});
  const auto projection = [&](const std::string& name, const std::string& result) {
    return tape.Named(result, tape.Linear(name, x, hidden, hidden));
  };
  tape.Named("attention.input", x);
  const auto query = projection("attention.query_projection", "attention.query");
  const auto key = projection("attention.key_projection", "attention.key");
  const auto value = projection("attention.value_projection", "attention.value");
  const auto attended = TapeAttention(tape, query, key, value, options, Causality::kBidirectional);
  const auto dense = tape.Linear("attention.dense", attended, hidden, hidden);
  tape.Forget(attended);
  // The code still holds `dense` where dropout made another.
  const auto dropped = tape.Dropout("attention.dense.dropout", dense, options.dropout);
  const auto sum = tape.Add(x, dropped);
  const auto middle = tape.LayerNorm("norm_1", sum);
  if (dropped != dense) tape.Forget(dropped);
  tape.Forget(sum);
  const auto up = tape.Linear("perceptron.up", middle, 4 * hidden, 4 * hidden);
  const auto active = tape.Activation("perceptron.activation", up, options.activation);
  tape.Forget(up);
  const auto down = tape.Linear("perceptron.down", active, hidden, hidden);
  const auto last =
      tape.Add(middle, tape.Dropout("perceptron.down.dropout", down, options.dropout));
  return tape.Finish(tape.LayerNorm("norm_2", last));
}

LayerMemory HeadMemory(const ModelOptions& options) {
  LayerTape tape;
  const auto x = tape.Input({options.sequence_length, options.hidden});
  const auto linear = tape.Linear("dense", x, options.hidden, options.hidden);
  const auto dense = tape.Activation("activation", linear, options.activation);
  tape.Forget(linear);
  const auto normed = tape.LayerNorm("norm", dense);
  return tape.Finish(
      tape.CrossEntropy(tape.Linear("vocabulary", normed, options.vocabulary, options.vocabulary)));
}

LayerSpec Embedding(const ModelOptions& options) {
  const int64_t hidden = options.hidden;
  LayerSpec layer{"bert.embeddings", "bert_embedding"};
  layer.parameters = {
      NormalParameter(std::string(kWordEmbedding), {options.vocabulary, hidden}),
      NormalParameter("bert.embeddings.position_embeddings.weight",
                      {options.sequence_length, hidden}),
      NormalParameter("bert.embeddings.token_type_embeddings.weight", {kTokenTypes, hidden})};
  AppendLayerNorm(layer.parameters, "bert.embeddings.LayerNorm", hidden);
  layer.outputs = HiddenStates(options);
  layer.forward_flops = options.sequence_length * hidden;
  layer.memory = EmbeddingMemory(options);
  return layer;
}

LayerSpec Block(const ModelOptions& options, int64_t index) {
  const std::string name = absl::StrCat("bert.encoder.layer.", index);
  const int64_t hidden = options.hidden;
  LayerSpec layer{name, "bert_block"};
  AppendLinear(layer.parameters, name + ".attention.self.query", hidden, hidden);
  AppendLinear(layer.parameters, name + ".attention.self.key", hidden, hidden);
  AppendLinear(layer.parameters, name + ".attention.self.value", hidden, hidden);
  AppendLinear(layer.parameters, name + ".attention.output.dense", hidden, hidden);
  AppendLayerNorm(layer.parameters, name + ".attention.output.LayerNorm", hidden);
  AppendLinear(layer.parameters, name + ".intermediate.dense", hidden, 4 * hidden);
  AppendLinear(layer.parameters, name + ".output.dense", 4 * hidden, hidden);
  AppendLayerNorm(layer.parameters, name + ".output.LayerNorm", hidden);
  layer.outputs = HiddenStates(options);
  layer.forward_flops = TransformerBlockFlops(options);
  return layer;
}

LayerSpec Head(const ModelOptions& options) {
  const int64_t hidden = options.hidden;
  LayerSpec layer{"cls.predictions", "bert_head"};
  AppendLinear(layer.parameters, "cls.predictions.transform.dense", hidden, hidden);
  AppendLayerNorm(layer.parameters, "cls.predictions.transform.LayerNorm", hidden);
  layer.parameters.push_back(NormalParameter(
      options.tie_embeddings ? std::string(kWordEmbedding) : "cls.predictions.decoder.weight",
      {options.vocabulary, hidden}));
  layer.parameters.push_back(ZeroParameter("cls.predictions.bias", {options.vocabulary}));
  layer.forward_flops = MatrixProductFlops(options.sequence_length, hidden, hidden) +
                        MatrixProductFlops(options.sequence_length, hidden, options.vocabulary);
  layer.memory = HeadMemory(options);
  return layer;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildBertSpec(const ModelOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckModelSizes(options, AttentionHeads::kUsed));
  return AssembleTokenModel(
      options, Objective::kMaskedToken, "gelu",
      {.embedding = Embedding, .block = Block, .block_memory = BlockMemory, .head = Head});
}

}  // namespace siphon
