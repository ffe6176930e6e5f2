// GPT-2's layers: pre-norm, learned positions, weights [in, out] as Hugging Face's Conv1D has them.
// The order of the parameters is that of planner/models/gpt.cc.

#include "pipeline/torch/kinds/layer_parts.h"

namespace siphon {
namespace {

constexpr double kEpsilon = 1e-5;  // of layer norms, GPT-2's

// x: [microbatch, sequence, in], weight: [in, out].
at::Tensor Project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor rows = x.reshape({-1, x.size(-1)});
  return at::addmm(bias, rows, weight).view({x.size(0), x.size(1), weight.size(1)});
}

at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, weight.sizes(), weight, bias, kEpsilon);
}

}  // namespace

LayerForward MakeGptEmbedding(const ModelOptions& options) {
  return [dropout = options.dropout](LayerContext& context, const std::vector<at::Tensor>& inputs) {
    enum { kTokens, kPositions };
    const at::Tensor& tokens = inputs[0];  // [microbatch, sequence]
    const at::Tensor& table = context.Parameter(kPositions);
    const int64_t sequence = tokens.size(1);
    const at::Tensor positions = sequence == table.size(0) ? table : table.narrow(0, 0, sequence);
    const at::Tensor x = at::embedding(context.Parameter(kTokens), tokens) + positions;
    return std::vector<at::Tensor>{context.Dropout(x, dropout)};
  };
}

LayerForward MakeGptBlock(const ModelOptions& options) {
  const AttentionOptions attention = {.heads = options.heads,
                                      .causal = true,
                                      .flash = options.flash_attention,
                                      .dropout = options.dropout};
  return [attention, dropout = options.dropout, activation = options.activation](
             LayerContext& context, const std::vector<at::Tensor>& inputs) {
    enum {
      kNorm1Weight,
      kNorm1Bias,
      kQkvWeight,
      kQkvBias,
      kProjectionWeight,
      kProjectionBias,
      kNorm2Weight,
      kNorm2Bias,
      kUpWeight,
      kUpBias,
      kDownWeight,
      kDownBias
    };
    const auto p = [&context](int index) -> const at::Tensor& { return context.Parameter(index); };
    const auto held = [&context](int index) { return context.ParameterAsHeld(index); };
    at::Tensor x = inputs[0];  // [microbatch, sequence, hidden]
    const at::Tensor normed = Norm(x, held(kNorm1Weight), held(kNorm1Bias));
    const std::vector<at::Tensor> qkv =
        Project(normed, p(kQkvWeight), p(kQkvBias)).split(x.size(2), /*dim=*/2);
    const at::Tensor attended = Attend(context, qkv[0], qkv[1], qkv[2], attention);
    x = x + context.Dropout(Project(attended, p(kProjectionWeight), p(kProjectionBias)), dropout);
    const at::Tensor up =
        Project(Norm(x, held(kNorm2Weight), held(kNorm2Bias)), p(kUpWeight), p(kUpBias));
    const at::Tensor down = Project(Activate(up, activation), p(kDownWeight), p(kDownBias));
    return std::vector<at::Tensor>{x + context.Dropout(down, dropout)};
  };
}

LayerForward MakeGptHead(const ModelOptions&) {
  return [](LayerContext& context, const std::vector<at::Tensor>& inputs) {
    enum { kNormWeight, kNormBias, kVocabulary };
    const at::Tensor x =
        Norm(inputs[0], context.ParameterAsHeld(kNormWeight), context.ParameterAsHeld(kNormBias));
    return std::vector<at::Tensor>{at::linear(x, context.Parameter(kVocabulary))};
  };
}

}  // namespace siphon
