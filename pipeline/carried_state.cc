#include "pipeline/carried_state.h"

#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pipeline/state_swaps.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

bool IsHere(const CarriedState::StageComputes& stages, const ParkedState& state) {
  return stages.contains(state.parked.stage);
}

StateMemory& MemoryOf(const CarriedState::StageComputes& stages, StageId stage) {
  return stages.at(stage)->state_memory();
}

StateGroup OneLayer(GroupKind kind, int layer) { return {kind, {layer, layer + 1}}; }

}  // namespace

std::vector<ParkedState> StateAway(const MemoryPlan& plan, const Schedule& training) {
  const HomeGroups home = HomeGroupsOf(training, plan);
  std::vector<ParkedState> away;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const StageId id(static_cast<int>(stage));
    const std::vector<StateGroup> groups = StateGroupsAway(plan, home, id);
    const std::vector<PlannedGroup>& planned = plan.stages[stage].groups;
    for (size_t index = 0; index < planned.size(); ++index) {
      if (StepsOnHost(plan.stages[stage], planned[index])) continue;
      const StateGroup group{planned[index].group.kind, planned[index].group.layers};
      const GroupId group_id(static_cast<int>(index));
      if (home.contains({id, group_id}) || !absl::c_linear_search(groups, group)) continue;
      away.push_back({{id, group_id, kNoMicrobatch}, group, planned[index].group.bytes});
    }
  }
  return away;
}

std::set<StageId> StagesSteppedOnHost(const MemoryPlan& plan) {
  std::set<StageId> stages;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (plan.stages[stage].update != UpdatePlace::kHost) continue;
    stages.insert(StageId(static_cast<int>(stage)));
  }
  return stages;
}

Bytes CarriedAtMost(const std::vector<ParkedState>& from, const std::vector<ParkedState>& to) {
  Bytes bytes;
  for (const ParkedState& state : from) bytes += state.bytes;
  for (const ParkedState& state : to) {
    const bool same = absl::c_any_of(from, [&](const ParkedState& other) {
      return other.parked.stage == state.parked.stage && other.group == state.group;
    });
    if (!same) bytes += state.bytes;
  }
  return bytes;
}

absl::Status CarriedState::Keep(StageCompute& compute, const LayerKey& layer) {
  if (layers_.contains(layer)) return absl::OkStatus();
  StateMemory& memory = compute.state_memory();
  const StateGroup group = OneLayer(std::get<GroupKind>(layer), std::get<int>(layer));
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors, memory.Tensors(group));
  std::vector<std::vector<std::byte>>& kept = layers_[layer];
  for (const absl::Span<std::byte> tensor : tensors) {
    kept.emplace_back(tensor.size());
    SIPHON_RETURN_IF_ERROR(compute.CopyToHost(tensor, absl::MakeSpan(kept.back())));
    bytes_ += Bytes(static_cast<int64_t>(tensor.size()));
  }
  return memory.Free(group);
}

absl::Status CarriedState::Restore(StageCompute& compute, const LayerKey& layer) {
  const auto found = layers_.find(layer);
  if (found == layers_.end()) return absl::OkStatus();
  StateMemory& memory = compute.state_memory();
  const StateGroup group = OneLayer(std::get<GroupKind>(layer), std::get<int>(layer));
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors, memory.Refill(group));
  SIPHON_CHECK(tensors.size() == found->second.size(), "a layer has the tensors that it had");
  for (size_t index = 0; index < tensors.size(); ++index) {
    const std::vector<std::byte>& kept = found->second[index];
    SIPHON_CHECK(tensors[index].size() == kept.size(), "a tensor has the size that it had");
    SIPHON_RETURN_IF_ERROR(compute.CopyFromHost(kept, tensors[index]));
    bytes_ -= Bytes(static_cast<int64_t>(kept.size()));
  }
  layers_.erase(found);
  return absl::OkStatus();
}

absl::Status CarriedState::TakeOut(const StageComputes& stages,
                                   const std::vector<ParkedState>& from, SwapEngine* engine,
                                   const std::vector<ParkedState>& to,
                                   const std::set<StageId>& on_host) {
  const auto keep_layers = [&](const ParkedState& state) {
    StageCompute& compute = *stages.at(state.parked.stage);
    for (int layer = state.group.layers.begin; layer < state.group.layers.end; ++layer) {
      SIPHON_RETURN_IF_ERROR(Keep(compute, {state.parked.stage, state.group.kind, layer}));
    }
    return absl::OkStatus();
  };
  for (const ParkedState& state : from) {
    if (!IsHere(stages, state)) continue;
    SIPHON_CHECK(engine != nullptr, "what is away was parked by an engine");
    SIPHON_ASSIGN_OR_RETURN(TensorSpans tensors,
                            MemoryOf(stages, state.parked.stage).Refill(state.group));
    SIPHON_RETURN_IF_ERROR(engine->StartIn(state.parked, std::move(tensors)));
    SIPHON_RETURN_IF_ERROR(engine->WaitIn(state.parked));
    SIPHON_RETURN_IF_ERROR(keep_layers(state));
  }
  for (const ParkedState& state : to) {
    if (IsHere(stages, state)) SIPHON_RETURN_IF_ERROR(keep_layers(state));
  }
  for (const auto& [stage, compute] : stages) {
    if (!on_host.contains(stage)) continue;
    std::set<int> layers;
    for (const StepTensor& tensor : compute->StepTensors()) layers.insert(tensor.layer);
    for (const int layer : layers) {
      SIPHON_RETURN_IF_ERROR(Keep(*compute, {stage, GroupKind::kOptimizerState, layer}));
    }
  }
  return absl::OkStatus();
}

absl::Status CarriedState::PutBack(const StageComputes& stages, const std::vector<ParkedState>& to,
                                   SwapEngine* engine) {
  for (const ParkedState& state : to) {
    if (!IsHere(stages, state)) continue;
    SIPHON_CHECK(engine != nullptr, "a plan that parks has an engine");
    StageCompute& compute = *stages.at(state.parked.stage);
    StateMemory& memory = compute.state_memory();
    for (int layer = state.group.layers.begin; layer < state.group.layers.end; ++layer) {
      SIPHON_RETURN_IF_ERROR(Restore(compute, {state.parked.stage, state.group.kind, layer}));
    }
    SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors, memory.Tensors(state.group));
    SIPHON_RETURN_IF_ERROR(engine->StartOut(state.parked, {tensors.begin(), tensors.end()}));
    SIPHON_RETURN_IF_ERROR(engine->WaitOut(state.parked));
    SIPHON_RETURN_IF_ERROR(memory.Free(state.group));
  }
  if (engine != nullptr) engine->TakeBytesOut();  // are of no step
  while (!layers_.empty()) {
    const LayerKey layer = layers_.begin()->first;
    SIPHON_RETURN_IF_ERROR(Restore(*stages.at(std::get<StageId>(layer)), layer));
  }
  return absl::OkStatus();
}

}  // namespace siphon
