#include "planner/strategies/harmony/harmony_room.h"

#include <algorithm>
#include <cstddef>

namespace siphon {
namespace {

struct StageBytes {
  Bytes kept;  // always there
  Bytes away;  // there when it steps
};

StageBytes WeightsOf(const StageCost& cost, const HarmonyChoice& choice) {
  StageBytes bytes;
  const auto add = [&](Bytes more, HarmonyAway from) {
    (choice.away >= from ? bytes.away : bytes.kept) += more;
  };
  add(cost.parameters, HarmonyAway::kParameters);
  add(cost.gradients, HarmonyAway::kGradients);
  const bool by_layer = choice.updates == HarmonyUpdates::kByLayer;
  if (choice.away < HarmonyAway::kOptimizerState || !by_layer) {
    add(cost.optimizer_state, HarmonyAway::kOptimizerState);
  }
  return bytes;
}

}  // namespace

Bytes LeastExcess(const PlanningProblem& problem, const std::vector<StageCost>& costs,
                  const HarmonyChoice& choice) {
  Bytes excess;
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    const auto index = static_cast<size_t>(worker);
    const Bytes capacity = problem.capacity.empty() ? Bytes(0) : problem.capacity[index];
    if (capacity == Bytes(0)) continue;
    Bytes kept;
    Bytes stepping;
    Bytes stashed;
    for (const StageId stage : StagesOf(problem.schedule, WorkerId(worker))) {
      const StageCost& cost = costs[static_cast<size_t>(stage.value)];
      const StageBytes bytes = WeightsOf(cost, choice);
      kept += bytes.kept;
      stepping = std::max(stepping, bytes.away);
      if (choice.activations == Placement::kKeep) {
        stashed += cost.stash * problem.schedule.microbatches;
      }
    }
    excess = std::max(excess, kept + std::max(stepping, stashed) - capacity);
  }
  return excess;
}

}  // namespace siphon
