#ifndef SIPHON_PIPELINE_TORCH_LAYER_PARTS_H_
#define SIPHON_PIPELINE_TORCH_LAYER_PARTS_H_

#include <string>

#include "pipeline/torch/layers.h"

namespace siphon {

// What the built-in models' layers are made of. All throw as LibTorch does.

// "gelu_new" (by tanh), "gelu" (exact), "relu".
at::Tensor Activate(const at::Tensor& x, const std::string& activation);

struct AttentionOptions {
  int64_t heads = 1;
  bool causal = false;
  bool flash = true;
  double dropout = 0;  // of the attention probabilities
};

// Scaled dot-product attention over heads. `query`, `key`, `value` and the result: [microbatch,
// sequence, hidden]. With `flash` and no dropout by LibTorch's fused kernel; otherwise written out,
// with one keyed mask of [microbatch, heads, sequence, sequence] when there is dropout in training.
at::Tensor Attend(LayerContext& context, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const AttentionOptions& options);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_LAYER_PARTS_H_
