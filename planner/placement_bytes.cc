#include "planner/placement_bytes.h"

#include <algorithm>
#include <cstddef>

namespace siphon {
namespace {

PlacementBytes BytesOf(const StageCost& cost, const StagePlan& plan, const LiveCopies& live) {
  constexpr auto kKept = static_cast<size_t>(Placement::kKeep);
  const auto state = static_cast<size_t>(plan.update == UpdatePlace::kHost ? Placement::kHostSwap
                                                                           : Placement::kKeep);
  PlacementBytes bytes{};
  bytes[kKept] = cost.gradients + cost.stash * live.microbatches;
  bytes[kKept] += cost.parameters * (1 + live.weight_versions);
  bytes[state] += cost.optimizer_state;
  for (const auto& [group, choice] : plan.groups) {
    const Bytes all = group.bytes * CopiesOf(group.kind, live);
    bytes[group.kind == GroupKind::kOptimizerState ? state : kKept] -= all;
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

std::vector<LiveCopies> PeakLiveCopies(const Schedule& schedule) {
  std::vector<LiveCopies> live;
  for (const int microbatches : PeakLiveMicrobatches(schedule)) {
    live.push_back({.microbatches = microbatches});
  }
  const std::vector<int> versions = PeakWeightVersions(schedule);
  for (size_t stage = 0; stage < live.size(); ++stage) {
    live[stage].weight_versions = versions[stage] - 1;
  }
  return live;
}

int CopiesAway(GroupKind kind, const LiveCopies& live) {
  return CopiesOf(kind, live) + (kind == GroupKind::kWeightVersions ? 1 : 0);
}

std::vector<PlacementBytes> BytesByPlacement(const PlanText& plan) {
  const std::vector<LiveCopies> live = PeakLiveCopies(plan.training);
  std::vector<PlacementBytes> stages;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const std::vector<StagePlan>& memory = plan.memory.stages;
    stages.push_back(BytesOf(plan.stages[stage].cost, memory.empty() ? StagePlan() : memory[stage],
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
