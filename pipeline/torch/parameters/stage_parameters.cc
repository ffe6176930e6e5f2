#include "pipeline/torch/parameters/stage_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/memory/storage_memory.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "pipeline/torch/parameters/gradient_sums.h"
#include "pipeline/torch/parameters/initial_values.h"
#include "planner/memory/group_memory.h"
#include "planner/memory/held_bytes.h"
#include "planner/round_up.h"
#include "planner/status.h"
#include "swap/memory_ledger.h"

namespace siphon {

namespace {

constexpr GroupKind kStateKinds[] = {GroupKind::kParameters, GroupKind::kGradients,
                                     GroupKind::kOptimizerState};

// What is away from the begin on has no memory; the kinds of the rest that start with a value.
std::vector<GroupKind> FreeAway(const std::vector<StateGroup>& away, HeldParameter& held) {
  std::vector<GroupKind> here;
  for (const GroupKind kind : kStateKinds) {
    bool is_away = false;
    for (const StateGroup& group : away) {
      if (group.kind != kind) continue;
      for (const at::Tensor& tensor : TensorsIn(group, held)) {
        FreeStorage(tensor.storage());
        is_away = true;
      }
    }
    if (!is_away && kind != GroupKind::kGradients) here.push_back(kind);
  }
  return here;
}

// With the room behind it up to the next boundary of kTensorAlignment.
Bytes AlignedBytes(Bytes bytes) { return RoundUp(bytes, Bytes(kTensorAlignment)); }

}  // namespace

StageParameters::StageParameters(const Model& model, const StagePartition& partition, StageId stage,
                                 uint64_t seed, const OptimizerTraits* optimizer,
                                 OptimizerOptions options, const std::vector<StateGroup>& away,
                                 at::Device device, int threads)
    : device_(device),
      optimizer_(optimizer),
      options_(std::move(options)),
      powers_(device),
      seed_(seed),
      threads_(threads) {
  const StageRange range = partition.stages[stage.value];
  first_layer_ = range.begin;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const size_t count = model.spec.layers[layer].parameters.size();
    of_layer_.emplace_back(count);
    use_.emplace_back(count);
  }
  std::vector<std::vector<GroupKind>> here;  // of each of held_
  for (const Parameter& parameter : CanonicalParameters(model.spec)) {
    HeldParameter held =
        MakeHeldParameter(model.spec, parameter, range, optimizer_->moments(options_),
                          ParameterType(parameter.shape, model.computed, model.vectors), device_);
    if (!held.value.defined()) continue;  // no use of it here
    here.push_back(FreeAway(away, held));
    for (size_t use = 0; use < held.uses.size(); ++use) {
      if (!held.uses[use].here) continue;
      const ParameterUse place = held.uses[use].place;
      of_layer_[place.layer - first_layer_][place.index] = held.value;
      use_[place.layer - first_layer_][place.index] = {static_cast<int>(held_.size()),
                                                       static_cast<int>(use)};
    }
    held_.push_back(std::move(held));
  }
  std::vector<StartOf> starts;
  for (size_t index = 0; index < held_.size(); ++index) {
    starts.push_back({&held_[index], std::move(here[index])});
  }
  siphon::Initialise(seed_, starts, threads_);
  const MemoryKindScope kind(MemoryKind::kOptimizer);
  norms_ = StepNorms(held_.size(), device_);
  update_count_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device_));
  update_count_on_host_ = device_.is_cpu() ? update_count_ : at::zeros({}, at::kFloat);
}

const std::vector<at::Tensor>& StageParameters::OfLayer(int layer) const {
  return of_layer_[layer - first_layer_];
}

HeldParameter::Use& StageParameters::UseAt(int layer, int index) {
  const auto [held, use] = use_[layer - first_layer_][index];
  return held_[held].uses[use];
}

void StageParameters::BeginStep(int microbatches) {
  microbatches_ = microbatches;
  norms_.Forget();
  for (HeldParameter& held : held_) {
    held.stepped = false;
    ForgetGradients(held);
  }
}

void StageParameters::Accumulate(int layer, const std::vector<at::Tensor>& gradients) {
  for (size_t index = 0; index < gradients.size(); ++index) {
    HeldParameter::Use& use = UseAt(layer, static_cast<int>(index));
    AddMicrobatch(gradients[index], use);
    const auto parameter = static_cast<size_t>(use_[layer - first_layer_][index].first);
    // The gradient may be away when all agree on the norm.
    if (held_[parameter].HasOneUse() && use.microbatches == microbatches_) {
      norms_.Note(parameter, use.gradient);
    }
  }
}

std::vector<SharedGradient> StageParameters::SharedGradients() {
  const MemoryKindScope kind(MemoryKind::kGradients);
  std::vector<SharedGradient> gradients;
  for (HeldParameter& held : held_) {
    if (!held.shared) continue;
    for (HeldParameter::Use& use : held.uses) {
      if (!use.gradient.defined()) use.gradient = EmptyTensor(held.wide, device_);
      gradients.push_back({held.name, use.place.layer, BytesOf(use.gradient)});
    }
  }
  return gradients;
}

absl::Status StageParameters::AddSharedGradients() {
  const MemoryKindScope kind(MemoryKind::kGradients);
  for (HeldParameter& held : held_) {
    if (held.shared) SIPHON_RETURN_IF_ERROR(AddSharedUses(held));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> StageParameters::GradientNorms() {
  for (size_t index = 0; index < held_.size(); ++index) {
    if (!held_[index].owned || norms_.Has(index)) continue;
    SIPHON_ASSIGN_OR_RETURN(const at::Tensor total, TotalGradient(held_[index]));
    norms_.Note(index, total);
  }
  const std::vector<float> all = norms_.Read();
  std::vector<float> norms;
  for (size_t index = 0; index < held_.size(); ++index) {
    if (held_[index].owned) norms.push_back(all[index]);
  }
  return norms;
}

absl::Status StageParameters::Update(const UpdateSettings& settings, StageRange layers) {
  // All sums first: a parameter that lacks one must not leave the others updated.
  std::vector<HeldParameter*> updated;
  for (HeldParameter& held : held_) {
    if (held.stepped || held.layer < layers.begin || layers.end <= held.layer) continue;
    SIPHON_RETURN_IF_ERROR(TotalGradient(held).status());
    SIPHON_RETURN_IF_ERROR(CheckMemory(held.value, "value", held.name));
    for (const at::Tensor& tensor : held.OptimizerState()) {
      SIPHON_RETURN_IF_ERROR(CheckMemory(tensor, "optimizer state", held.name));
    }
    updated.push_back(&held);
  }
  update_count_.fill_(static_cast<double>(settings.update));
  for (HeldParameter* const held : updated) {
    UpdateOne(settings, held->value, held->total, Where::kThere, *held);
  }
  return absl::OkStatus();
}

void StageParameters::UpdateOne(const UpdateSettings& settings, const at::Tensor& value,
                                const at::Tensor& gradient, Where where, HeldParameter& held) {
  held.stepped = true;
  if (settings.skipped) return ForgetGradients(held);
  if (settings.gradient_scale != 1.0f) gradient.mul_(settings.gradient_scale);
  const bool decays = held.spec.shape.size() >= 2;  // vectors are biases and norms
  const ParameterUpdate update = {
      .parameter = held.master.defined() ? held.master : value,
      .gradient = gradient,
      .moments = held.moments,
      .update_count = where == Where::kThere ? update_count_ : update_count_on_host_,
      .learning_rate = settings.learning_rate,
      .weight_decay = decays ? options_.weight_decay : 0.0};
  // Wherever a plan has it, the same bits.
  if (where == Where::kOnHost && device_.is_cuda()) {
    optimizer_->update_as_on_cuda(options_, update, powers_);
  } else {
    optimizer_->update(options_, update);
  }
  if (held.master.defined()) value.copy_(held.master);
  ForgetGradients(held);
}

std::vector<StepTensor> StageParameters::StepTensors() {
  std::vector<StepTensor> tensors;
  for (const HeldParameter& held : held_) {
    const Bytes wide = SizeOf(held.wide);
    const bool alone = held.HasOneUse();
    const at::Tensor& gradient =
        held.total.defined() || !alone ? held.total : held.uses[0].gradient;
    tensors.push_back(
        {.layer = held.layer,
         .moves = alone,
         .stepped = held.stepped,
         .parameter_bytes = SizeOf(held.spec),
         .gradient_bytes = wide,
         .state_bytes = AlignedBytes(wide) * static_cast<int64_t>(held.OptimizerState().size()),
         .parameter = BytesOf(held.value.storage()),
         .gradient = gradient.defined() ? BytesOf(gradient.storage()) : absl::Span<std::byte>()});
  }
  return tensors;
}

absl::Status StageParameters::KeepStateOnHost(const TensorSpans& memory) {
  return CallTorch("optimizer state on the host", [&]() -> absl::Status {
    std::vector<StartOf> starts;
    for (size_t index = 0; index < held_.size(); ++index) {
      if (memory[index].empty()) continue;
      held_[index].KeepStateOnHost(memory[index]);
      starts.push_back({&held_[index], {GroupKind::kOptimizerState}});
    }
    siphon::Initialise(seed_, starts, threads_);
    return absl::OkStatus();
  });
}

absl::Status StageParameters::UpdateOnHost(const UpdateSettings& settings, StageRange layers,
                                           const std::vector<HostStepMemory>& memory) {
  // As Update: all are looked at before the first changes.
  std::vector<size_t> updated;
  for (size_t index = 0; index < held_.size(); ++index) {
    const HeldParameter& held = held_[index];
    if (held.stepped || held.layer < layers.begin || layers.end <= held.layer) continue;
    if (memory[index].parameter.size() != static_cast<size_t>(SizeOf(held.spec).value) ||
        memory[index].gradient.size() != static_cast<size_t>(SizeOf(held.wide).value)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the step of ", held.name, " has no memory on the host"));
    }
    for (const HeldParameter::Use& use : held.uses) {
      if (use.microbatches > 0 || held.total.defined()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("no backward pass has reached ", held.name, " in layer ", use.place.layer));
    }
    for (const at::Tensor& tensor : held.OptimizerState()) {
      SIPHON_RETURN_IF_ERROR(CheckMemory(tensor, "optimizer state", held.name));
    }
    updated.push_back(index);
  }
  update_count_on_host_.fill_(static_cast<double>(settings.update));
  for (const size_t index : updated) {
    HeldParameter& held = held_[index];
    UpdateOne(settings, TensorOver(held.spec, memory[index].parameter),
              TensorOver(held.wide, memory[index].gradient), Where::kOnHost, held);
  }
  return absl::OkStatus();
}

std::vector<StateTensor> StageParameters::State() {
  constexpr StateTensor::Kind kMomentKinds[] = {StateTensor::Kind::kFirstMoment,
                                                StateTensor::Kind::kSecondMoment};
  std::vector<StateTensor> state;
  for (const HeldParameter& held : held_) {
    state.push_back({held.name, StateTensor::Kind::kParameter, held.owned, held.layer, held.spec,
                     BytesOf(held.value.storage()), held.value.is_cpu()});
    if (held.master.defined()) {
      state.push_back({held.name, StateTensor::Kind::kMaster, held.owned, held.layer, held.wide,
                       BytesOf(held.master.storage()), held.master.is_cpu()});
    }
    for (size_t moment = 0; moment < held.moments.size(); ++moment) {
      state.push_back({held.name, kMomentKinds[moment], held.owned, held.layer, held.wide,
                       BytesOf(held.moments[moment].storage()), held.moments[moment].is_cpu()});
    }
  }
  return state;
}

absl::Status StageParameters::CheckParameters(int layer) const {
  for (const auto& [held, use] : use_[layer - first_layer_]) {
    SIPHON_RETURN_IF_ERROR(CheckMemory(held_[held].value, "value", held_[held].name));
  }
  return absl::OkStatus();
}

absl::Status StageParameters::CheckGradients(int layer) const {
  for (const auto& [held, use] : use_[layer - first_layer_]) {
    SIPHON_RETURN_IF_ERROR(
        CheckMemory(held_[held].uses[use].gradient, "gradient", held_[held].name));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorSpans> StageParameters::Tensors(const StateGroup& group) {
  TensorSpans spans;
  for (const HeldParameter& held : held_) {
    for (const at::Tensor& tensor : TensorsIn(group, held)) {
      spans.push_back(BytesOf(tensor.storage()));
    }
  }
  return spans;
}

absl::Status StageParameters::Free(const StateGroup& group) {
  return CallTorch("freeing memory of training state", [&] {
    for (HeldParameter& held : held_) {
      const std::vector<at::Tensor> tensors = TensorsIn(group, held);
      for (const at::Tensor& tensor : tensors) FreeStorage(tensor.storage());
      if (group.kind == GroupKind::kOptimizerState && !tensors.empty()) held.TakeStateFromHost();
    }
  });
}

bool StageParameters::IsStateOnHost(absl::Span<const std::byte> bytes) const {
  return std::any_of(held_.begin(), held_.end(), [&](const HeldParameter& held) {
    if (!held.HasStateOnHost()) return false;
    const std::vector<at::Tensor> state = held.OptimizerState();
    return std::any_of(state.begin(), state.end(), [&](const at::Tensor& tensor) {
      return tensor.is_cpu() && tensor.storage().data() == bytes.data();
    });
  });
}

absl::StatusOr<TensorSpans> StageParameters::Refill(const StateGroup& group) {
  return CallTorch("memory for what was away", [&]() -> absl::StatusOr<TensorSpans> {
    const MemoryKindScope kind(MemoryKindOf(group.kind));
    for (const HeldParameter& held : held_) {
      for (const at::Tensor& tensor : TensorsIn(group, held)) {
        if (IsFreed(tensor.storage())) RefillStorage(tensor.storage());
      }
    }
    return Tensors(group);
  });
}

absl::Status StageParameters::Initialise(const StateGroup& group) {
  return CallTorch("values to start with", [&]() -> absl::Status {
    std::vector<StartOf> starts;
    for (HeldParameter& held : held_) {
      const std::vector<at::Tensor> tensors = TensorsIn(group, held);
      for (const at::Tensor& tensor : tensors) {
        SIPHON_RETURN_IF_ERROR(CheckMemory(tensor, GroupKindName(group.kind), held.name));
      }
      if (!tensors.empty()) starts.push_back({&held, {group.kind}});
    }
    siphon::Initialise(seed_, starts, threads_);
    return absl::OkStatus();
  });
}

}  // namespace siphon
