#include "pipeline/torch/parameters/held_parameter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/memory/storage_memory.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "swap/memory_ledger.h"

namespace siphon {
HeldParameter MakeHeldParameter(const ModelSpec& model, const Parameter& parameter,
                                const StageRange& stage, int moments, DType type,
                                at::Device device) {
  HeldParameter held;
  held.name = parameter.name;
  held.spec = {type, parameter.shape};
  held.wide = {DType::kFloat32, parameter.shape};
  bool any_here = false;
  for (const ParameterUse& place : parameter.uses) {
    const bool here = Contains(stage, place.layer);
    if (here && !any_here) held.layer = place.layer;
    any_here |= here;
    held.shared |= !here;
    held.uses.push_back({.place = place, .here = here, .gradient = {}});
  }
  if (!any_here) return held;
  held.owned = held.uses[0].here;
  // The first use's specification says how the parameter starts, so that every copy starts with the
  // same bits.
  const ParameterUse first = parameter.uses[0];
  held.first = &model.layers[first.layer].parameters[first.index];
  {
    const MemoryKindScope kind(MemoryKind::kParameters);
    held.value = EmptyTensor(held.spec, device);
  }
  {
    const MemoryKindScope kind(MemoryKind::kGradients);
    for (HeldParameter::Use& use : held.uses) {
      if (use.here) use.gradient = EmptyTensor(held.wide, device);
    }
  }
  const MemoryKindScope kind(MemoryKind::kOptimizer);
  if (held.spec != held.wide) held.master = EmptyTensor(held.wide, device);
  for (int moment = 0; moment < moments; ++moment) {
    held.moments.push_back(EmptyTensor(held.wide, device));
  }
  return held;
}

std::vector<at::Tensor> HeldParameter::OptimizerState() const {
  std::vector<at::Tensor> state;
  if (master.defined()) state.push_back(master);
  state.insert(state.end(), moments.begin(), moments.end());
  return state;
}

void HeldParameter::KeepStateOnHost(absl::Span<std::byte> memory) {
  const size_t bytes = static_cast<size_t>(SizeOf(wide).value);
  const size_t room = (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  const auto place = [&](at::Tensor& tensor) {
    if (tensor.device().is_cpu()) {
      PlaceStorage(tensor.storage(), memory.subspan(0, bytes));
    } else {
      tensor = TensorOver(wide, memory.subspan(0, bytes));
    }
    memory.remove_prefix(std::min(memory.size(), room));
  };
  if (master.defined()) place(master);
  for (at::Tensor& moment : moments) place(moment);
}

bool HeldParameter::HasStateOnHost() const {
  return (master.defined() && master.is_cpu()) || (!moments.empty() && moments[0].is_cpu());
}

void HeldParameter::TakeStateFromHost() {
  if (!value.defined() || value.is_cpu()) return;
  const auto take = [&](at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cpu()) return;
    tensor = EmptyTensor(wide, value.device());
    FreeStorage(tensor.storage());
  };
  take(master);
  for (at::Tensor& moment : moments) take(moment);
}

std::vector<at::Tensor> TensorsIn(const StateGroup& group, const HeldParameter& parameter) {
  if (!Contains(group.layers, parameter.layer)) return {};
  switch (group.kind) {
    case GroupKind::kParameters:
      if (parameter.HasOneUse()) return {parameter.value};
      break;
    case GroupKind::kGradients:
      if (parameter.HasOneUse()) return {parameter.uses[0].gradient};
      break;
    case GroupKind::kOptimizerState:
      return parameter.OptimizerState();
    case GroupKind::kActivations:
    case GroupKind::kWeightVersions:
      break;
  }
  return {};
}

absl::Status CheckMemory(const at::Tensor& tensor, absl::string_view what,
                         absl::string_view parameter) {
  if (!IsFreed(tensor.storage())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the ", what, " of ", parameter, " is needed while it is away"));
}

}  // namespace siphon
