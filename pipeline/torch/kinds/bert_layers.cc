// BERT's layers: post-norm, bidirectional, no padding mask, weights [out, in]. The order of the
// parameters is that of planner/models/bert.cc.

#include "pipeline/torch/kinds/layer_parts.h"

namespace siphon {
namespace {

constexpr double kEpsilon = 1e-12;  // of layer norms, BERT's

at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, weight.sizes(), weight, bias, kEpsilon);
}

}  // namespace

LayerForward MakeBertEmbedding(const ModelOptions& options) {
  return [dropout = options.dropout](LayerContext& context, const std::vector<at::Tensor>& inputs) {
    enum { kWords, kPositions, kTokenTypes, kNormWeight, kNormBias };
    const at::Tensor& tokens = inputs[0];  // [microbatch, sequence]
    const at::Tensor& table = context.Parameter(kPositions);
    const int64_t sequence = tokens.size(1);
    const at::Tensor positions = sequence == table.size(0) ? table : table.narrow(0, 0, sequence);
    // Every token is of the first of the two types: the data has no sentence pairs.
    at::Tensor x =
        at::embedding(context.Parameter(kWords), tokens) + context.Parameter(kTokenTypes)[0];
    x = Norm(x + positions, context.ParameterAsHeld(kNormWeight),
             context.ParameterAsHeld(kNormBias));
    return std::vector<at::Tensor>{context.Dropout(x, dropout)};
  };
}

LayerForward MakeBertBlock(const ModelOptions& options) {
  const AttentionOptions attention = {.heads = options.heads,
                                      .causal = false,
                                      .flash = options.flash_attention,
                                      .dropout = options.dropout};
  return [attention, dropout = options.dropout, activation = options.activation](
             LayerContext& context, const std::vector<at::Tensor>& inputs) {
    enum {
      kQueryWeight,
      kQueryBias,
      kKeyWeight,
      kKeyBias,
      kValueWeight,
      kValueBias,
      kDenseWeight,
      kDenseBias,
      kNorm1Weight,
      kNorm1Bias,
      kUpWeight,
      kUpBias,
      kDownWeight,
      kDownBias,
      kNorm2Weight,
      kNorm2Bias
    };
    const auto p = [&context](int index) -> const at::Tensor& { return context.Parameter(index); };
    const auto held = [&context](int index) { return context.ParameterAsHeld(index); };
    at::Tensor x = inputs[0];  // [microbatch, sequence, hidden]
    const at::Tensor query = at::linear(x, p(kQueryWeight), p(kQueryBias));
    const at::Tensor key = at::linear(x, p(kKeyWeight), p(kKeyBias));
    const at::Tensor value = at::linear(x, p(kValueWeight), p(kValueBias));
    const at::Tensor dense =
        at::linear(Attend(context, query, key, value, attention), p(kDenseWeight), p(kDenseBias));
    x = Norm(x + context.Dropout(dense, dropout), held(kNorm1Weight), held(kNorm1Bias));
    const at::Tensor up = Activate(at::linear(x, p(kUpWeight), p(kUpBias)), activation);
    const at::Tensor down = at::linear(up, p(kDownWeight), p(kDownBias));
    return std::vector<at::Tensor>{
        Norm(x + context.Dropout(down, dropout), held(kNorm2Weight), held(kNorm2Bias))};
  };
}

LayerForward MakeBertHead(const ModelOptions& options) {
  return [activation = options.activation](LayerContext& context,
                                           const std::vector<at::Tensor>& inputs) {
    enum { kDenseWeight, kDenseBias, kNormWeight, kNormBias, kVocabulary, kVocabularyBias };
    const auto p = [&context](int index) -> const at::Tensor& { return context.Parameter(index); };
    const auto held = [&context](int index) { return context.ParameterAsHeld(index); };
    const at::Tensor dense =
        Activate(at::linear(inputs[0], p(kDenseWeight), p(kDenseBias)), activation);
    const at::Tensor x = Norm(dense, held(kNormWeight), held(kNormBias));
    return std::vector<at::Tensor>{at::linear(x, p(kVocabulary), p(kVocabularyBias))};
  };
}

}  // namespace siphon
