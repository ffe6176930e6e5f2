#include "planner/memory/estimate_runtime.h"

#include <algorithm>
#include <utility>

#include "planner/memory/held_bytes.h"
#include "planner/memory/layer_uses.h"
#include "planner/memory/stage_passes.h"
#include "planner/memory/worker_walk.h"
#include "planner/status.h"

namespace siphon {
namespace {

// LibTorch's optimizer kernels want the number of updates as a tensor.
constexpr Bytes kUpdateCount{4};

// Adds one parameter to every stage that uses it.
void AddParameter(const MemoryInputs& inputs, const Parameter& parameter,
                  std::vector<StageState>& states) {
  const HeldBytes held = HeldBytesOf(parameter.shape, inputs);
  std::vector<int> uses(states.size());
  for (const ParameterUse& use : parameter.uses) {
    ++uses[StageOfLayer(*inputs.partition, use.layer).value];
  }
  const int all = static_cast<int>(parameter.uses.size());
  for (size_t stage = 0; stage < states.size(); ++stage) {
    if (uses[stage] == 0) continue;
    MemoryByKind& resident = states[stage].resident;
    resident[MemoryKind::kParameters] += held.weights;
    resident[MemoryKind::kGradients] += held.gradients * uses[stage];
    resident[MemoryKind::kOptimizer] += held.optimizer;
    if (uses[stage] == all) continue;
    states[stage].shared_gradients += held.gradients * (all - uses[stage]);
    states[stage].shared_sum += held.gradients;
  }
}

std::vector<StageState> StatesOf(const MemoryInputs& inputs) {
  std::vector<StageState> states(inputs.partition->stages.size());
  for (const Parameter& parameter : CanonicalParameters(*inputs.model)) {
    AddParameter(inputs, parameter, states);
  }
  const std::vector<int> versions = PeakWeightVersions(*inputs.schedule);
  for (size_t stage = 0; stage < states.size(); ++stage) {
    MemoryByKind& resident = states[stage].resident;
    resident[MemoryKind::kOptimizer] += kUpdateCount;
    resident[MemoryKind::kWeightVersions] =
        resident[MemoryKind::kParameters] * (versions[stage] - 1);
  }
  for (size_t worker = 0; worker < inputs.communication.size(); ++worker) {
    const std::vector<StageId> held =
        StagesOf(*inputs.schedule, WorkerId(static_cast<int>(worker)));
    if (held.empty()) continue;
    states[held.front().value].resident[MemoryKind::kCommunication] += inputs.communication[worker];
  }
  return states;
}

// Parameters that each layer of a stage is the first there to use.
void SetLayerParameters(const MemoryInputs& inputs, std::vector<StagePasses>& passes) {
  for (const Parameter& parameter : CanonicalParameters(*inputs.model)) {
    const Bytes size = HeldBytesOf(parameter.shape, inputs).weights;
    int last_stage = -1;
    for (const ParameterUse& use : parameter.uses) {
      const int stage = StageOfLayer(*inputs.partition, use.layer).value;
      if (stage == last_stage) continue;
      last_stage = stage;
      const int first = inputs.partition->stages[stage].begin;
      passes[stage].layers[use.layer - first].parameters += size;
    }
  }
}

}  // namespace

absl::StatusOr<MemoryEstimate> EstimateRuntime(const MemoryInputs& inputs) {
  SIPHON_RETURN_IF_ERROR(CheckMemoryInputs(inputs));
  const Schedule& schedule = *inputs.schedule;
  std::vector<StagePasses> passes = PassesOfStages(inputs);
  SetLayerParameters(inputs, passes);
  const std::vector<StageState> states = StatesOf(inputs);
  const std::vector<int> versions = PeakWeightVersions(schedule);
  MemoryEstimate estimate;
  estimate.stages.resize(passes.size());
  estimate.workers.resize(WorkerCount(schedule));
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    const WorkerWalk walk(schedule, WorkerId(worker), passes, states, inputs.sent);
    for (const StageId id : StagesOf(schedule, WorkerId(worker))) {
      StageMemory& stage = estimate.stages[id.value];
      stage.stage = id;
      stage.worker = WorkerId(worker);
      stage.memory = walk.fullest()[id.value];
      stage.live_microbatches = walk.most_live()[id.value];
      stage.weight_versions = versions[id.value];
      stage.layers = std::move(passes[id.value].layers);
      estimate.workers[worker] = estimate.workers[worker] + stage.memory;
    }
  }
  return estimate;
}

}  // namespace siphon
