#include "tests/support/reference_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "pipeline/torch/keyed_random.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "tests/support/reference_models.h"

namespace siphon::reference {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

at::Tensor CopyOf(const TensorSpec& spec, absl::Span<const std::byte> bytes,
                  const ComputeDevice& device) {
  if (spec.dtype != DType::kInt64) throw std::invalid_argument("the reference takes tokens only");
  return at::from_blob(const_cast<std::byte*>(bytes.data()), spec.shape, at::kLong)
      .clone()
      .to(ToDevice(device));
}

NamedValues ValuesOf(const Tensors& tensors) {
  NamedValues values;
  for (const auto& [name, there] : tensors) {
    const at::Tensor tensor = there.cpu();
    const float* data = tensor.const_data_ptr<float>();
    values[name].assign(data, data + tensor.numel());
  }
  return values;
}

at::ScalarType ComputedIn(const Settings& settings) {
  if (settings.computed == DType::kFloat32) return at::kFloat;
  if (settings.computed == DType::kBFloat16) return at::kBFloat16;
  if (settings.computed == DType::kFloat16) return at::kHalf;
  throw std::invalid_argument("the reference computes in floating numbers");
}

}  // namespace

struct Trainer::State {
  ModelSpec model;
  Settings settings;
  std::vector<std::string> names;  // canonical order
  int64_t updates = 0;             // done
  Tensors parameters, gradients, first_moments, second_moments;

  at::Tensor Loss(Leaves& leaves, const StepInputs& inputs, int microbatch, double dropout) const;
  // For each use of a parameter, in layer order, its gradient summed over the microbatches in the
  // order of its layer.
  std::vector<std::pair<std::string, at::Tensor>> AccumulateUses(const StepInputs& inputs,
                                                                 StepResult& result) const;
  // The microbatches in the order of the layer with this use; uses are counted as the forward pass
  // comes by them.
  std::vector<int> OrderOfUse(size_t use, int microbatches) const;
  void SumUses(const std::vector<std::pair<std::string, at::Tensor>>& uses);
  void Clip(StepResult& result);
  void Update(const std::string& name, int64_t update, double learning_rate);
};

at::Tensor Trainer::State::Loss(Leaves& leaves, const StepInputs& inputs, int microbatch,
                                double dropout) const {
  const MicrobatchData& data = inputs.microbatches[microbatch];
  const at::Tensor tokens = CopyOf(data.input_spec, data.input, settings.device);
  const at::Tensor targets = CopyOf(data.target_spec, data.target, settings.device);
  const at::Tensor logits = Logits(model.options, leaves, tokens,
                                   {.seed = settings.seed,
                                    .step = inputs.step,
                                    .microbatch = microbatch,
                                    .probability = dropout});
  const at::Tensor sum =
      at::cross_entropy_loss(logits.reshape({-1, model.classes}).to(at::kFloat),
                             targets.reshape(-1), {}, at::Reduction::Sum, kIgnoredTarget, 0.0);
  return sum.div(inputs.target_count);
}

std::vector<int> Trainer::State::OrderOfUse(size_t use, int microbatches) const {
  if (settings.accumulation.empty()) {
    std::vector<int> ascending(microbatches);
    std::iota(ascending.begin(), ascending.end(), 0);
    return ascending;
  }
  size_t layer = 0;
  for (size_t before = model.layers[0].parameters.size(); use >= before;) {
    before += model.layers.at(++layer).parameters.size();
  }
  return settings.accumulation.at(layer);
}

std::vector<std::pair<std::string, at::Tensor>> Trainer::State::AccumulateUses(
    const StepInputs& inputs, StepResult& result) const {
  const int microbatches = static_cast<int>(inputs.microbatches.size());
  std::vector<std::string> use_names;
  std::vector<torch::autograd::variable_list> gradients;  // [microbatch][use]
  for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
    Leaves leaves(parameters, ComputedIn(settings), settings.rounds_vectors);
    const at::Tensor loss = Loss(leaves, inputs, microbatch, model.options.dropout);
    result.microbatch_losses.push_back(loss.item<float>());
    result.loss += static_cast<double>(result.microbatch_losses.back());
    torch::autograd::variable_list wanted;
    use_names.clear();
    for (const auto& [name, leaf] : leaves.uses) {
      wanted.push_back(leaf);
      use_names.push_back(name);
    }
    gradients.push_back(torch::autograd::grad({loss * result.loss_scale}, wanted));
  }
  std::vector<std::pair<std::string, at::Tensor>> sums;
  for (size_t use = 0; use < use_names.size(); ++use) {
    const std::vector<int> order = OrderOfUse(use, microbatches);
    const auto wide = [&](int microbatch) {
      return gradients.at(microbatch)[use].to(at::kFloat).contiguous();
    };
    at::Tensor sum = wide(order.at(0)).clone();
    for (size_t next = 1; next < order.size(); ++next) sum.add_(wide(order[next]));
    sums.emplace_back(use_names[use], std::move(sum));
  }
  return sums;
}

void Trainer::State::SumUses(const std::vector<std::pair<std::string, at::Tensor>>& uses) {
  gradients.clear();
  for (const auto& [name, sum] : uses) {
    const auto [position, first] = gradients.try_emplace(name, sum);
    if (!first) position->second = position->second + sum;
  }
}

void Trainer::State::Clip(StepResult& result) {
  double squares = 0;
  for (const std::string& name : names) {
    const double norm = at::linalg_vector_norm(gradients.at(name)).item<float>();
    squares += norm * norm;
  }
  const bool scaled = settings.loss_scale != 0;
  result.skipped = scaled && !std::isfinite(squares);
  result.gradient_norm = std::sqrt(squares) / result.loss_scale;
  if (scaled) {
    for (auto& [name, gradient] : gradients) gradient.div_(result.loss_scale);
  }
  if (settings.clip_norm == 0) return;
  const float norm = static_cast<float>(result.gradient_norm);
  result.clip_factor = std::min(1.0F, static_cast<float>(settings.clip_norm) / (norm + 1e-6F));
  for (auto& [name, gradient] : gradients) gradient.mul_(result.clip_factor);
}

void Trainer::State::Update(const std::string& name, int64_t update, double learning_rate) {
  const at::Tensor& parameter = parameters.at(name);
  const at::Tensor& gradient = gradients.at(name);
  const double decay = parameter.dim() >= 2 ? settings.weight_decay : 0.0;
  if (settings.optimizer == "sgd") {
    std::vector<at::Tensor> momentum;
    if (settings.momentum != 0) momentum.push_back(first_moments.at(name));
    at::_fused_sgd_({parameter}, {gradient}, momentum, decay, settings.momentum, learning_rate, 0.0,
                    false, false, update == 1);
    return;
  }
  const at::Tensor step = at::full({}, static_cast<double>(update), parameter.options());
  const at::Tensor& first = first_moments.at(name);
  const at::Tensor& second = second_moments.at(name);
  if (settings.optimizer == "adamw") {
    at::_fused_adamw_({parameter}, {gradient}, {first}, {second}, {}, {step}, learning_rate,
                      settings.beta1, settings.beta2, decay, settings.epsilon, false, false);
  } else {
    at::_fused_adam_({parameter}, {gradient}, {first}, {second}, {}, {step}, learning_rate,
                     settings.beta1, settings.beta2, decay, settings.epsilon, false, false);
  }
}

Trainer::Trainer(const ModelSpec& model, const Settings& settings)
    : state_(std::make_unique<State>()) {
  at::set_num_threads(settings.threads);
  state_->model = model;
  state_->settings = settings;
  const bool adam = settings.optimizer == "adamw" || settings.optimizer == "adam";
  if (!adam && settings.optimizer != "sgd")
    throw std::invalid_argument("optimizer " + settings.optimizer);
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& spec : layer.parameters) {
      if (state_->parameters.contains(spec.name)) continue;  // a later use of a tied one
      state_->names.push_back(spec.name);
      at::Tensor initial =
          InitialParameter(spec, settings.seed).clone().to(ToDevice(settings.device));
      if (adam || settings.momentum != 0)
        state_->first_moments[spec.name] = at::zeros_like(initial);
      if (adam) state_->second_moments[spec.name] = at::zeros_like(initial);
      state_->parameters[spec.name] = std::move(initial);
    }
  }
}

Trainer::~Trainer() = default;

StepResult Trainer::Step(const StepInputs& inputs, double learning_rate) {
  StepResult result;
  if (state_->settings.loss_scale != 0) result.loss_scale = state_->settings.loss_scale;
  state_->SumUses(state_->AccumulateUses(inputs, result));
  state_->Clip(result);
  if (result.skipped) {
    state_->settings.loss_scale /= 2;
    return result;
  }
  ++state_->updates;
  for (const std::string& name : state_->names) {
    state_->Update(name, state_->updates, learning_rate);
  }
  return result;
}

std::vector<float> Trainer::Evaluate(const StepInputs& inputs) {
  const at::NoGradGuard no_gradients;
  std::vector<float> losses;
  for (int microbatch = 0; microbatch < static_cast<int>(inputs.microbatches.size());
       ++microbatch) {
    Leaves leaves(state_->parameters, ComputedIn(state_->settings),
                  state_->settings.rounds_vectors);
    losses.push_back(state_->Loss(leaves, inputs, microbatch, 0.0).item<float>());
  }
  return losses;
}

NamedValues Trainer::Parameters() const { return ValuesOf(state_->parameters); }
NamedValues Trainer::FirstMoments() const { return ValuesOf(state_->first_moments); }
NamedValues Trainer::SecondMoments() const { return ValuesOf(state_->second_moments); }
NamedValues Trainer::Gradients() const { return ValuesOf(state_->gradients); }

}  // namespace siphon::reference
