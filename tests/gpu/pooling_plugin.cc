// A plugin of one layer that LibTorch has no deterministic backward of on CUDA: adaptive pooling.

#include "pipeline/torch/layers.h"
#include "pipeline/torch/plugin.h"

namespace {

using siphon::DType;

constexpr int64_t kClasses = 4;

absl::StatusOr<siphon::Model> BuildPooling(const siphon::ModelOptions& /*options*/) {
  siphon::Model model;
  model.spec.objective = siphon::Objective::kClassification;
  model.spec.input = {DType::kFloat32, {1, 16, 16}};
  model.spec.target = {DType::kInt64, {1}};
  model.spec.classes = kClasses;
  model.spec.layers = {{.name = "conv",
                        .parameters = {{.name = "conv.weight", .shape = {4, 1, 3, 3}}},
                        .outputs = {{DType::kFloat32, {4, 16, 16}}}},
                       {.name = "pool",
                        .parameters = {{.name = "pool.weight", .shape = {kClasses, 4 * 3 * 3}}},
                        .outputs = {}}};
  using Tensors = std::vector<at::Tensor>;
  model.forward = {[](siphon::LayerContext& layer, const Tensors& in) -> Tensors {
                     return {at::conv2d(in[0], layer.Parameter(0), {}, 1, 1)};
                   },
                   // 16 is no multiple of 3: pools overlap, and gradients are summed where they do.
                   [](siphon::LayerContext& layer, const Tensors& in) -> Tensors {
                     const at::Tensor pooled = at::adaptive_avg_pool2d(in[0], {3, 3});
                     return {at::linear(pooled.flatten(1), layer.Parameter(0))};
                   }};
  return model;
}

}  // namespace

SIPHON_PLUGIN(BuildPooling)
