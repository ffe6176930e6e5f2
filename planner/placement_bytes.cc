#include "planner/placement_bytes.h"

#include <algorithm>
#include <cstddef>

namespace siphon {
namespace {

PlacementBytes BytesOf(const StageCost& cost, const std::vector<PlannedGroup>& groups, int live) {
  constexpr auto kKept = static_cast<size_t>(Placement::kKeep);
  PlacementBytes bytes{};
  bytes[kKept] = cost.parameters + cost.gradients + cost.optimizer_state + cost.stash * live;
  for (const auto& [group, choice] : groups) {
    const Bytes all = group.bytes * (group.kind == GroupKind::kActivations ? live : 1);
    bytes[kKept] -= all;
    bytes[static_cast<size_t>(choice.placement)] += all;
  }
  return bytes;
}

}  // namespace

std::vector<int> PeakLiveMicrobatches(const Schedule& schedule) {
  std::vector<int> live(static_cast<size_t>(StageCount(schedule)));
  std::vector<int> most = live;
  for (const std::vector<Action>& program : schedule.programs) {
    for (const Action& action : program) {
      const auto stage = static_cast<size_t>(action.stage.value);
      if (action.kind == ActionKind::kForward) most[stage] = std::max(most[stage], ++live[stage]);
      if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) {
        --live[stage];
      }
    }
  }
  return most;
}

std::vector<PlacementBytes> BytesByPlacement(const PlanText& plan) {
  const std::vector<int> live = PeakLiveMicrobatches(plan.training);
  std::vector<PlacementBytes> stages;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const std::vector<StagePlan>& memory = plan.memory.stages;
    stages.push_back(BytesOf(plan.stages[stage].cost,
                             memory.empty() ? std::vector<PlannedGroup>() : memory[stage].groups,
                             live[stage]));
  }
  return stages;
}

PlacementBytes Sum(const std::vector<PlacementBytes>& stages) {
  PlacementBytes sum{};
  for (const PlacementBytes& stage : stages) {
    for (size_t placement = 0; placement < stage.size(); ++placement) {
      sum[placement] += stage[placement];
    }
  }
  return sum;
}

}  // namespace siphon
