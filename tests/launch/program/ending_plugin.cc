// A plugin of one linear layer that ends the program where model.hidden says so: 1 by exit() and 2
// by a crash while it builds its model, 3 by a crash in the forward pass of the last layer.

#include <csignal>
#include <cstdlib>

#include "pipeline/torch/plugin.h"

namespace {

constexpr int64_t kClasses = 3;

absl::StatusOr<siphon::Model> BuildLinear(const siphon::ModelOptions& options) {
  if (options.hidden == 1) std::exit(0);
  if (options.hidden == 2) std::raise(SIGSEGV);
  const bool crashes_later = options.hidden == 3;
  siphon::Model model;
  model.spec.objective = siphon::Objective::kClassification;
  model.spec.input = {siphon::DType::kFloat32, {8}};
  model.spec.target = {siphon::DType::kInt64, {}};
  model.spec.classes = kClasses;
  model.spec.layers = {{.name = "in",
                        .parameters = {{.name = "in.weight", .shape = {8, 8}}},
                        .outputs = {{siphon::DType::kFloat32, {8}}}},
                       {.name = "out",
                        .parameters = {{.name = "out.weight", .shape = {8, kClasses}}},
                        .outputs = {}}};
  const auto product = [](siphon::LayerContext& layer, const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>{at::matmul(in[0], layer.Parameter(0))};
  };
  model.forward = {product, [=](siphon::LayerContext& layer, const std::vector<at::Tensor>& in) {
                     if (crashes_later) std::raise(SIGSEGV);
                     return product(layer, in);
                   }};
  return model;
}

}  // namespace

SIPHON_PLUGIN(BuildLinear)
