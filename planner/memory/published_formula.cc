#include "planner/memory/published_formula.h"

namespace siphon {
namespace {

bool IsTransformerBlock(const LayerSpec& layer) {
  return layer.kind == "gpt_block" || layer.kind == "bert_block";
}

bool IsTransformer(const ModelSpec& model) {
  return model.options.kind == "gpt" || model.options.kind == "bert";
}

}  // namespace

std::optional<std::vector<SavedTensor>> PublishedActivations(const ModelSpec& model,
                                                             const LayerSpec& layer,
                                                             int64_t microbatch,
                                                             Precision precision) {
  if (!IsTransformer(model)) return std::nullopt;
  if (!IsTransformerBlock(layer)) return std::vector<SavedTensor>();
  const ModelOptions& options = model.options;
  const int64_t wide = precision == Precision::kFloat32 ? 2 : 1;  // the masks' bytes double too
  const int64_t sbh = wide * options.sequence_length * microbatch * options.hidden;
  const int64_t ass =
      wide * options.heads * options.sequence_length * options.sequence_length * microbatch;
  // Section 4.1: attention 11 s b h + 5 a s s b, perceptron 19 s b h, layer norms 4 s b h.
  return std::vector<SavedTensor>{{"norm_1.input", Bytes(2 * sbh)},
                                  {"attention.qkv.input", Bytes(2 * sbh)},
                                  {"attention.query", Bytes(2 * sbh)},
                                  {"attention.key", Bytes(2 * sbh)},
                                  {"attention.softmax", Bytes(2 * ass)},
                                  {"attention.softmax.mask", Bytes(ass)},
                                  {"attention.probabilities", Bytes(2 * ass)},
                                  {"attention.value", Bytes(2 * sbh)},
                                  {"attention.projection.input", Bytes(2 * sbh)},
                                  {"attention.projection.mask", Bytes(sbh)},
                                  {"norm_2.input", Bytes(2 * sbh)},
                                  {"perceptron.up.input", Bytes(2 * sbh)},
                                  {"perceptron.activation.input", Bytes(8 * sbh)},
                                  {"perceptron.down.input", Bytes(8 * sbh)},
                                  {"perceptron.down.mask", Bytes(sbh)}};
}

ParameterBytes BytesOfParameter(Precision precision, int moments) {
  if (precision == Precision::kFloat32) return {4, 4, 4 * int64_t{moments}};
  return {2, 2, 4 + 4 * int64_t{moments}};
}

}  // namespace siphon
