#include "launch/profile/moving_state.h"

#include <utility>
#include <vector>

#include "planner/stage_partition.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct LayerState {
  Bytes weights;  // of parameters that this layer alone uses
  // Of parameters that it is the first of its stage to use, those included.
  Bytes first_uses;
};

// [layer]
std::vector<LayerState> StateOf(const ModelSpec& model, const StagePartition& partition) {
  std::vector<LayerState> layers(model.layers.size());
  for (const Parameter& parameter : CanonicalParameters(model)) {
    const Bytes size = SizeOf({DType::kFloat32, parameter.shape});
    int last_stage = -1;
    for (const ParameterUse& use : parameter.uses) {
      const int stage = StageOfLayer(partition, use.layer).value;
      if (stage != last_stage) layers[use.layer].first_uses += size;
      last_stage = stage;
    }
    if (parameter.uses.size() == 1) layers[parameter.uses[0].layer].weights += size;
  }
  return layers;
}

// So many moments for each of the layer's first uses.
Bytes StateOfParameters(Bytes optimizer_state, Bytes first_uses) {
  if (first_uses == Bytes(0)) return Bytes(0);
  return first_uses * (optimizer_state.value / first_uses.value);
}

Bytes AlignedTensor(Bytes bytes) {
  constexpr int64_t kAlignment = 64;
  return Bytes((bytes.value + kAlignment - 1) / kAlignment * kAlignment);
}

bool IsParkedWithHost(const StagePlan& stage, GroupKind kind, int layer) {
  for (const auto& [group, choice] : stage.groups) {
    if (group.kind == kind && choice.placement == Placement::kHostSwap &&
        group.layers.begin <= layer && layer < group.layers.end) {
      return true;
    }
  }
  return false;
}

// A parameter in one of the stages that use it, as StageCompute::StepTensors has it.
struct HostTensor {
  StageId stage;
  int layer = 0;  // of its first use there
  bool moves = false;
  Bytes bytes;  // at a cache line, as are those of its state together
  Bytes state;
};

std::vector<HostTensor> HostTensorsOf(const PlanningProblem& problem, const ModelSpec& model) {
  const std::vector<LayerState> state = StateOf(model, problem.partition);
  std::vector<HostTensor> tensors;
  for (const Parameter& parameter : CanonicalParameters(model)) {
    const Bytes bytes = AlignedTensor(SizeOf({DType::kFloat32, parameter.shape}));
    int last_stage = -1;
    for (const ParameterUse& use : parameter.uses) {
      const StageId stage = StageOfLayer(problem.partition, use.layer);
      if (std::exchange(last_stage, stage.value) == stage.value) continue;
      const int64_t moments = problem.profile.layers[use.layer].optimizer_state.value /
                              state[use.layer].first_uses.value;
      tensors.push_back({stage, use.layer, parameter.uses.size() == 1, bytes, bytes * moments});
    }
  }
  return tensors;
}

// HostStepBytes, tensor by tensor.
std::vector<Bytes> HostStepTensorBytes(const PlanningProblem& problem, const MemoryPlan& plan,
                                       const ModelSpec& model) {
  std::vector<Bytes> bytes(WorkerCount(problem.schedule));
  if (plan.stages.empty()) return bytes;
  for (const HostTensor& tensor : HostTensorsOf(problem, model)) {
    const StagePlan& planned = plan.stages[tensor.stage.value];
    if (planned.update != UpdatePlace::kHost) continue;
    Bytes& of_worker = bytes[problem.schedule.worker_of_stage[tensor.stage.value].value];
    of_worker += tensor.state;
    for (const GroupKind kind : {GroupKind::kParameters, GroupKind::kGradients}) {
      const bool parked = tensor.moves && IsParkedWithHost(planned, kind, tensor.layer);
      if (!parked) of_worker += tensor.bytes;
    }
  }
  return bytes;
}

}  // namespace

void HoldWhatCannotMove(const ModelSpec& model, PlanningProblem& problem) {
  const std::vector<LayerState> state = StateOf(model, problem.partition);
  SIPHON_CHECK(state.size() == problem.profile.layers.size(), "the profile is of the model");
  for (size_t stage = 0; stage < problem.partition.stages.size(); ++stage) {
    const StageRange& layers = problem.partition.stages[stage];
    MemoryByKind& held = problem.held[problem.schedule.worker_of_stage[stage].value];
    for (int index = layers.begin; index < layers.end; ++index) {
      LayerProfile& layer = problem.profile.layers[index];
      const auto& [weights, first_uses] = state[index];
      SIPHON_CHECK(layer.parameters == first_uses, "the profile's parameters are the model's");
      held[MemoryKind::kParameters] += std::exchange(layer.parameters, weights) - weights;
      held[MemoryKind::kGradients] += std::exchange(layer.gradients, weights) - weights;
      const Bytes moving = StateOfParameters(layer.optimizer_state, first_uses);
      held[MemoryKind::kOptimizer] += std::exchange(layer.optimizer_state, moving) - moving;
    }
  }
}

std::vector<Bytes> SharedGradientBytes(const ModelSpec& model, const StagePartition& partition,
                                       const Schedule& schedule) {
  std::vector<Bytes> shared(WorkerCount(schedule));
  for (const Parameter& parameter : CanonicalParameters(model)) {
    const auto all = static_cast<int>(parameter.uses.size());
    std::vector<int> uses(partition.stages.size());
    for (const ParameterUse& use : parameter.uses) {
      ++uses[StageOfLayer(partition, use.layer).value];
    }
    for (size_t stage = 0; stage < uses.size(); ++stage) {
      if (uses[stage] == 0 || uses[stage] == all) continue;
      shared[schedule.worker_of_stage[stage].value] +=
          SizeOf({DType::kFloat32, parameter.shape}) * (all - uses[stage] + 1);
    }
  }
  return shared;
}

std::vector<Bytes> HostStepBytes(const PlanningProblem& problem, const MemoryPlan& plan,
                                 const ModelSpec* model) {
  if (model != nullptr) return HostStepTensorBytes(problem, plan, *model);
  std::vector<Bytes> bytes(WorkerCount(problem.schedule));
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (plan.stages[stage].update != UpdatePlace::kHost) continue;
    const int worker = problem.schedule.worker_of_stage[stage].value;
    if (bytes[worker] == Bytes(0) && !problem.held.empty()) {
      const MemoryByKind& held = problem.held[worker];
      bytes[worker] += held[MemoryKind::kParameters] + held[MemoryKind::kGradients];
    }
    const StageRange& layers = problem.partition.stages[stage];
    for (int index = layers.begin; index < layers.end; ++index) {
      const LayerProfile& layer = problem.profile.layers[index];
      bytes[worker] += layer.parameters + layer.gradients + layer.optimizer_state;
    }
    for (const auto& [group, choice] : plan.stages[stage].groups) {
      const bool weights =
          group.kind == GroupKind::kParameters || group.kind == GroupKind::kGradients;
      if (weights && choice.placement == Placement::kHostSwap) bytes[worker] -= group.bytes;
    }
  }
  return bytes;
}

Bytes HostStateBytes(const PlanningProblem& problem, const ModelSpec& model,
                     const std::set<StageId>& stages) {
  Bytes bytes;
  for (const HostTensor& tensor : HostTensorsOf(problem, model)) {
    if (stages.contains(tensor.stage)) bytes += tensor.state;
  }
  return bytes;
}

}  // namespace siphon
