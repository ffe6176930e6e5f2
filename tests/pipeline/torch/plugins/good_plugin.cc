// A plugin of one linear layer that fails on request.

#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/plugin.h"

namespace {

absl::StatusOr<siphon::Model> BuildLinear(const siphon::ModelOptions& options) {
  if (options.activation == "fail") {
    return absl::InvalidArgumentError(absl::StrCat("no such activation: ", options.activation));
  }
  if (options.activation == "throw") throw std::runtime_error("thrown on purpose");
  constexpr int64_t kClasses = 3;
  siphon::Model model;
  model.spec.objective = siphon::Objective::kClassification;
  model.spec.input = {siphon::DType::kFloat32, {options.hidden}};
  model.spec.target = {siphon::DType::kInt64, {}};
  model.spec.classes = kClasses;
  model.spec.layers = {{.name = "linear",
                        .kind = "linear",
                        .parameters = {{.name = "weight", .shape = {options.hidden, kClasses}}},
                        .outputs = {}}};
  if (options.activation == "forget") return model;
  model.forward = {[](siphon::LayerContext& context, const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{at::matmul(inputs[0], context.Parameter(0))};
  }};
  return model;
}

}  // namespace

SIPHON_PLUGIN(BuildLinear)
