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
  return layer;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildBertSpec(const ModelOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckModelSizes(options, AttentionHeads::kUsed));
  return AssembleTokenModel(options, Objective::kMaskedToken, "gelu",
                            {.embedding = Embedding, .block = Block, .head = Head});
}

}  // namespace siphon
