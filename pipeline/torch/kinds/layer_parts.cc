#include "pipeline/torch/kinds/layer_parts.h"

#include <cmath>
#include <limits>

namespace siphon {
namespace {

// [sequence, sequence]: minus infinity above the diagonal, else zero. Added rather than filled in,
// because an addition saves nothing for the backward pass.
at::Tensor CausalMask(int64_t sequence, const at::TensorOptions& options) {
  return at::full({sequence, sequence}, -std::numeric_limits<float>::infinity(), options).triu_(1);
}

at::Tensor SplitHeads(const at::Tensor& x, int64_t heads) {  // to [microbatch, heads, sequence, d]
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

at::Tensor AttendWrittenOut(LayerContext& context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const AttentionOptions& options) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
  at::Tensor scores = at::matmul(query, key.transpose(2, 3)) * scale;
  if (options.causal) scores = scores + CausalMask(query.size(2), scores.options());
  const at::Tensor probabilities = context.Dropout(at::softmax(scores, -1), options.dropout);
  return at::matmul(probabilities, value);
}

}  // namespace

at::Tensor Activate(const at::Tensor& x, const std::string& activation) {
  if (activation == "gelu_new") return at::gelu(x, "tanh");
  if (activation == "gelu") return at::gelu(x, "none");
  TORCH_CHECK(activation == "relu", "unknown activation '", activation, "'");
  return at::relu(x);
}

at::Tensor Attend(LayerContext& context, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const AttentionOptions& options) {
  const at::Tensor q = SplitHeads(query, options.heads);
  const at::Tensor k = SplitHeads(key, options.heads);
  const at::Tensor v = SplitHeads(value, options.heads);
  const bool drops = context.training() && options.dropout > 0;
  const at::Tensor attended =
      options.flash && !drops
          ? at::scaled_dot_product_attention(q, k, v, {}, /*dropout_p=*/0.0, options.causal)
          : AttendWrittenOut(context, q, k, v, options);
  return attended.transpose(1, 2).reshape(query.sizes());
}

}  // namespace siphon
