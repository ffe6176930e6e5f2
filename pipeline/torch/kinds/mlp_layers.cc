// A network that looks at one token at a time: embedding, hidden layers, output. Weights [out, in].
// The order of the parameters is that of planner/models/mlp.cc.

#include "pipeline/torch/kinds/layer_parts.h"

namespace siphon {

LayerForward MakeMlpEmbedding(const ModelOptions&) {
  return [](LayerContext& context, const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{at::embedding(context.Parameter(0), inputs[0])};
  };
}

LayerForward MakeMlpHidden(const ModelOptions& options) {
  return [dropout = options.dropout, activation = options.activation](
             LayerContext& context, const std::vector<at::Tensor>& inputs) {
    enum { kWeight, kBias };
    const at::Tensor x = Activate(
        at::linear(inputs[0], context.Parameter(kWeight), context.Parameter(kBias)), activation);
    return std::vector<at::Tensor>{context.Dropout(x, dropout)};
  };
}

LayerForward MakeMlpOutput(const ModelOptions&) {
  return [](LayerContext& context, const std::vector<at::Tensor>& inputs) {
    enum { kWeight, kBias };
    return std::vector<at::Tensor>{
        at::linear(inputs[0], context.Parameter(kWeight), context.Parameter(kBias))};
  };
}

}  // namespace siphon
