#include "launch/profile/moving_state.h"

#include <utility>
#include <vector>

#include "planner/memory/held_bytes.h"
#include "planner/round_up.h"
#include "planner/stage_partition.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

struct LayerState {
  HeldBytes alone;  // of parameters that this layer alone uses
  // Of parameters that it is the first of its stage to use, those included.
  HeldBytes first_uses;
};

// [layer]
std::vector<LayerState> StateOf(const MemoryInputs& inputs, const StagePartition& partition) {
  std::vector<LayerState> layers(inputs.model->layers.size());
  for (const Parameter& parameter : CanonicalParameters(*inputs.model)) {
    const HeldBytes held = HeldBytesOf(parameter.shape, inputs);
    int last_stage = -1;
    for (const ParameterUse& use : parameter.uses) {
      const int stage = StageOfLayer(partition, use.layer).value;
      LayerState& layer = layers[use.layer];
      if (stage != last_stage) layer.first_uses = layer.first_uses + held;
      last_stage = stage;
    }
    if (parameter.uses.size() > 1) continue;
    LayerState& layer = layers[parameter.uses[0].layer];
    layer.alone = layer.alone + held;
  }
  return layers;
}

Bytes AlignedTensor(Bytes bytes) { return RoundUp(bytes, kCacheLine); }

bool IsParkedWithHost(const StagePlan& stage, GroupKind kind, int layer) {
  for (const auto& [group, choice] : stage.groups) {
    if (group.kind == kind && choice.placement == Placement::kHostSwap &&
        Contains(group.layers, layer)) {
      return true;
    }
  }
  return false;
}

// A parameter in one of the stages that use it, as StageCompute::StepTensors has it; each tensor at
// a cache line.
struct HostTensor {
  StageId stage;
  int layer = 0;  // of its first use there
  bool moves = false;
  Bytes parameter;
  Bytes gradient;
  Bytes state;  // master and moments, each of them float32
};

std::vector<HostTensor> HostTensorsOf(const PlanningProblem& problem, const MemoryInputs& inputs) {
  std::vector<HostTensor> tensors;
  for (const Parameter& parameter : CanonicalParameters(*inputs.model)) {
    const HeldBytes held = HeldBytesOf(parameter.shape, inputs);
    const Bytes wide = SizeOf({DType::kFloat32, parameter.shape});
    int last_stage = -1;
    for (const ParameterUse& use : parameter.uses) {
      const StageId stage = StageOfLayer(problem.partition, use.layer);
      if (std::exchange(last_stage, stage.value) == stage.value) continue;
      tensors.push_back({.stage = stage,
                         .layer = use.layer,
                         .moves = parameter.uses.size() == 1,
                         .parameter = AlignedTensor(held.weights),
                         .gradient = AlignedTensor(held.gradients),
                         .state = AlignedTensor(wide) * (held.optimizer.value / wide.value)});
    }
  }
  return tensors;
}

// HostStepBytes, tensor by tensor.
std::vector<Bytes> HostStepTensorBytes(const PlanningProblem& problem, const MemoryPlan& plan,
                                       const MemoryInputs& inputs) {
  std::vector<Bytes> bytes(WorkerCount(problem.schedule));
  if (plan.stages.empty()) return bytes;
  for (const HostTensor& tensor : HostTensorsOf(problem, inputs)) {
    const StagePlan& planned = plan.stages[tensor.stage.value];
    if (!StepsOnHost(planned, tensor.layer)) continue;
    Bytes& of_worker = bytes[problem.schedule.worker_of_stage[tensor.stage.value].value];
    of_worker += tensor.state;
    for (const GroupKind kind : {GroupKind::kParameters, GroupKind::kGradients}) {
      if (tensor.moves && IsParkedWithHost(planned, kind, tensor.layer)) continue;
      of_worker += kind == GroupKind::kParameters ? tensor.parameter : tensor.gradient;
    }
  }
  return bytes;
}

}  // namespace

void HoldWhatCannotMove(const MemoryInputs& inputs, PlanningProblem& problem) {
  const std::vector<LayerState> state = StateOf(inputs, problem.partition);
  SIPHON_CHECK(state.size() == problem.profile.layers.size(), "the profile is of the model");
  for (size_t stage = 0; stage < problem.partition.stages.size(); ++stage) {
    const StageRange& layers = problem.partition.stages[stage];
    MemoryByKind& held = problem.held[problem.schedule.worker_of_stage[stage].value];
    for (int index = layers.begin; index < layers.end; ++index) {
      LayerProfile& layer = problem.profile.layers[index];
      const auto& [alone, first_uses] = state[index];
      SIPHON_CHECK(layer.parameters == first_uses.weights,
                   "the profile's parameters are the model's");
      const auto leave = [&held](MemoryKind kind, Bytes& bytes, Bytes moving) {
        held[kind] += std::exchange(bytes, moving) - moving;
      };
      leave(MemoryKind::kParameters, layer.parameters, alone.weights);
      leave(MemoryKind::kGradients, layer.gradients, alone.gradients);
      layer.shared_parameters = first_uses.weights - alone.weights;
      layer.shared_gradients = first_uses.gradients - alone.gradients;
      // Every copy of a parameter has its own.
      leave(MemoryKind::kOptimizer, layer.optimizer_state, first_uses.optimizer);
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
                                 const MemoryInputs* inputs) {
  if (inputs != nullptr) return HostStepTensorBytes(problem, plan, *inputs);
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
      if (!StepsOnHost(plan.stages[stage], index)) continue;
      const LayerProfile& layer = problem.profile.layers[index];
      bytes[worker] += layer.parameters + layer.gradients + layer.optimizer_state;
    }
    for (const auto& [group, choice] : plan.stages[stage].groups) {
      const bool weights =
          group.kind == GroupKind::kParameters || group.kind == GroupKind::kGradients;
      if (!weights || choice.placement != Placement::kHostSwap) continue;
      for (int index = group.layers.begin; index < group.layers.end; ++index) {
        if (!StepsOnHost(plan.stages[stage], index)) continue;
        const LayerProfile& layer = problem.profile.layers[index];
        bytes[worker] -= group.kind == GroupKind::kParameters ? layer.parameters : layer.gradients;
      }
    }
  }
  return bytes;
}

Bytes HostStateBytes(const PlanningProblem& problem, const MemoryInputs& inputs,
                     const std::set<StageId>& stages) {
  Bytes bytes;
  for (const HostTensor& tensor : HostTensorsOf(problem, inputs)) {
    if (stages.contains(tensor.stage)) bytes += tensor.state;
  }
  return bytes;
}

}  // namespace siphon
