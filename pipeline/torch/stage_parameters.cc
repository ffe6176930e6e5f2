#include "pipeline/torch/stage_parameters.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/keyed_random.h"
#include "pipeline/torch/tensor_bytes.h"
#include "planner/status.h"
#include "swap/memory_ledger.h"

namespace siphon {

StageParameters::StageParameters(const ModelSpec& model, const StagePartition& partition,
                                 StageId stage, uint64_t seed, const OptimizerTraits* optimizer,
                                 OptimizerOptions options)
    : optimizer_(optimizer), options_(std::move(options)) {
  const StageRange range = partition.stages[stage.value];
  first_layer_ = range.begin;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const size_t count = model.layers[layer].parameters.size();
    of_layer_.emplace_back(count);
    use_.emplace_back(count);
  }
  for (const Parameter& parameter : CanonicalParameters(model)) {
    Held held = MakeHeld(model, parameter, range, seed);
    if (!held.value.defined()) continue;  // no use of it here
    for (size_t use = 0; use < held.uses.size(); ++use) {
      if (!held.uses[use].here) continue;
      const ParameterUse place = held.uses[use].place;
      of_layer_[place.layer - first_layer_][place.index] = held.value;
      use_[place.layer - first_layer_][place.index] = {static_cast<int>(held_.size()),
                                                       static_cast<int>(use)};
    }
    held_.push_back(std::move(held));
  }
  const MemoryKindScope kind(MemoryKind::kOptimizer);
  update_count_ = at::zeros({}, at::kFloat);
}

StageParameters::Held StageParameters::MakeHeld(const ModelSpec& model, const Parameter& parameter,
                                                const StageRange& range, uint64_t seed) {
  Held held;
  held.name = parameter.name;
  held.spec = {DType::kFloat32, parameter.shape};
  bool any_here = false;
  for (const ParameterUse& place : parameter.uses) {
    const bool here = place.layer >= range.begin && place.layer < range.end;
    any_here |= here;
    held.shared |= !here;
    held.uses.push_back({.place = place, .here = here, .gradient = {}});
  }
  if (!any_here) return held;
  held.owned = held.uses[0].here;
  // The first use's specification says how the parameter starts, so that every copy starts with the
  // same bits.
  const ParameterUse first = parameter.uses[0];
  {
    const MemoryKindScope kind(MemoryKind::kParameters);
    held.value = InitialParameter(model.layers[first.layer].parameters[first.index], seed);
  }
  {
    const MemoryKindScope kind(MemoryKind::kGradients);
    for (Use& use : held.uses) {
      if (use.here) use.gradient = EmptyTensor(held.spec);
    }
  }
  const MemoryKindScope kind(MemoryKind::kOptimizer);
  for (int moment = 0; moment < optimizer_->moments(options_); ++moment) {
    held.moments.push_back(at::zeros(held.spec.shape, at::kFloat));
  }
  return held;
}

const std::vector<at::Tensor>& StageParameters::OfLayer(int layer) const {
  return of_layer_[layer - first_layer_];
}

StageParameters::Use& StageParameters::UseAt(int layer, int index) {
  const auto [held, use] = use_[layer - first_layer_][index];
  return held_[held].uses[use];
}

void StageParameters::ClearGradients() {
  for (Held& held : held_) {
    held.total.reset();
    for (Use& use : held.uses) {
      use.has_gradient = false;
      if (!use.here) use.gradient.reset();
    }
  }
}

void StageParameters::Accumulate(int layer, const std::vector<at::Tensor>& gradients) {
  for (size_t index = 0; index < gradients.size(); ++index) {
    Use& use = UseAt(layer, static_cast<int>(index));
    if (use.has_gradient) {
      use.gradient.add_(gradients[index]);
    } else {
      use.gradient.copy_(gradients[index]);
      use.has_gradient = true;
    }
  }
}

std::vector<SharedGradient> StageParameters::SharedGradients() {
  const MemoryKindScope kind(MemoryKind::kGradients);
  std::vector<SharedGradient> gradients;
  for (Held& held : held_) {
    if (!held.shared) continue;
    for (Use& use : held.uses) {
      if (!use.gradient.defined()) use.gradient = EmptyTensor(held.spec);
      gradients.push_back({held.name, use.place.layer, BytesOf(use.gradient)});
    }
  }
  return gradients;
}

absl::Status StageParameters::AddSharedGradients() {
  const MemoryKindScope kind(MemoryKind::kGradients);
  for (Held& held : held_) {
    if (!held.shared) continue;
    if (held.total.defined()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the shared gradients of ", held.name, " were added already"));
    }
    for (Use& use : held.uses) {
      if (use.here ? use.has_gradient : use.gradient.defined()) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "the shared gradient of ", held.name, " in layer ", use.place.layer, " is not there"));
    }
    // Into memory of its own: the stage's own gradient may still be on its way to other stages.
    held.total = at::add(held.uses[0].gradient, held.uses[1].gradient);
    for (size_t use = 2; use < held.uses.size(); ++use) held.total.add_(held.uses[use].gradient);
    for (Use& use : held.uses) {
      if (!use.here) use.gradient.reset();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<at::Tensor> StageParameters::Total(Held& held) {
  if (held.total.defined()) return held.total;
  if (held.shared) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the gradients of ", held.name,
        ", which several stages use, have to be added before the norm and the update"));
  }
  for (const Use& use : held.uses) {
    if (use.has_gradient) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("no backward pass has reached ", held.name, " in layer ", use.place.layer));
  }
  for (size_t use = 1; use < held.uses.size(); ++use) {
    held.uses[0].gradient.add_(held.uses[use].gradient);
  }
  held.total = held.uses[0].gradient;
  return held.total;
}

absl::StatusOr<std::vector<float>> StageParameters::GradientNorms() {
  std::vector<float> norms;
  for (Held& held : held_) {
    if (!held.owned) continue;
    SIPHON_ASSIGN_OR_RETURN(const at::Tensor total, Total(held));
    norms.push_back(at::linalg_vector_norm(total).item<float>());
  }
  return norms;
}

absl::Status StageParameters::Update(const UpdateSettings& settings) {
  // All sums first: a parameter that lacks one must not leave the others updated.
  for (Held& held : held_) SIPHON_RETURN_IF_ERROR(Total(held).status());
  update_count_.fill_(static_cast<double>(settings.update));
  for (Held& held : held_) {
    if (settings.gradient_scale != 1.0f) held.total.mul_(settings.gradient_scale);
    const bool decays = held.spec.shape.size() >= 2;  // vectors are biases and norms
    optimizer_->update(options_, {.parameter = held.value,
                                  .gradient = held.total,
                                  .moments = held.moments,
                                  .update_count = update_count_,
                                  .learning_rate = settings.learning_rate,
                                  .weight_decay = decays ? options_.weight_decay : 0.0});
  }
  ClearGradients();
  return absl::OkStatus();
}

std::vector<StateTensor> StageParameters::State() {
  constexpr StateTensor::Kind kMomentKinds[] = {StateTensor::Kind::kFirstMoment,
                                                StateTensor::Kind::kSecondMoment};
  std::vector<StateTensor> state;
  for (const Held& held : held_) {
    state.push_back(
        {held.name, StateTensor::Kind::kParameter, held.owned, held.spec, BytesOf(held.value)});
    for (size_t moment = 0; moment < held.moments.size(); ++moment) {
      state.push_back(
          {held.name, kMomentKinds[moment], held.owned, held.spec, BytesOf(held.moments[moment])});
    }
  }
  return state;
}

}  // namespace siphon
