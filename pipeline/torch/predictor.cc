#include "pipeline/torch/predictor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "planner/status.h"

namespace siphon {

Predictor::Predictor(const Model& model) : model_(model) {
  for (const LayerSpec& layer : model_.spec.layers) {
    of_layer_.emplace_back(layer.parameters.size());
  }
  for (const Parameter& parameter : CanonicalParameters(model_.spec)) {
    const at::Tensor value = at::zeros(parameter.shape, at::kFloat);
    for (const ParameterUse& use : parameter.uses) of_layer_[use.layer][use.index] = value;
    parameters_.push_back({parameter.name, {DType::kFloat32, parameter.shape}, value});
  }
}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Make(const Model& model) {
  SIPHON_RETURN_IF_ERROR(ValidateModel(model));
  const TensorSpec& input = model.spec.input;
  if (model.spec.objective != Objective::kNextToken || input.dtype != DType::kInt64 ||
      input.shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model that takes ", ToString(input),
                     " a sample and was not trained for the next token cannot continue a text"));
  }
  return CallTorch("memory for the parameters",
                   [&] { return std::unique_ptr<Predictor>(new Predictor(model)); });
}

std::vector<StateTensor> Predictor::State() {
  std::vector<StateTensor> state;
  for (const Named& parameter : parameters_) {
    state.push_back({.name = parameter.name,
                     .kind = StateTensor::Kind::kParameter,
                     .spec = parameter.spec,
                     .bytes = BytesOf(parameter.value)});
  }
  return state;
}

absl::StatusOr<std::vector<float>> Predictor::NextTokenLogits(absl::Span<const int64_t> tokens) {
  const int64_t longest = model_.spec.input.shape[0];
  if (tokens.empty() || static_cast<int64_t>(tokens.size()) > longest) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of ", tokens.size(), " tokens; the model takes 1 to ", longest));
  }
  for (const int64_t token : tokens) {
    if (token >= 0 && token < model_.spec.classes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("token ", token, " is not in the vocabulary of ", model_.spec.classes));
  }
  return CallTorch("prediction", [&] { return Predict(tokens); });
}

std::vector<float> Predictor::Predict(absl::Span<const int64_t> tokens) const {
  const at::NoGradGuard not_recording;
  at::Tensor input = at::empty({1, static_cast<int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), input.mutable_data_ptr<int64_t>());
  std::vector<at::Tensor> activations = {input};
  for (size_t layer = 0; layer < model_.forward.size(); ++layer) {
    LayerContext context(&of_layer_[layer], {.layer = static_cast<int>(layer)},
                         /*training=*/false);
    activations = model_.forward[layer](context, activations);
    for (at::Tensor& activation : activations) activation = ContiguousAligned(activation);
  }
  const at::Tensor logits = activations.at(0).reshape({-1, model_.spec.classes});
  TORCH_CHECK(logits.size(0) == input.numel(), "the last layer produced ",
              DescribeTensor(activations[0]), " for ", input.numel(), " tokens");
  const float* last = logits.const_data_ptr<float>() + (logits.numel() - model_.spec.classes);
  return {last, last + model_.spec.classes};
}

}  // namespace siphon
