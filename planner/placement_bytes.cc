#include "planner/placement_bytes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace siphon {
namespace {

// `goes` [group] is of CopiesThatGo.
PlacementBytes BytesOf(const StageCost& cost, const StagePlan& plan, const LiveCopies& live,
                       const std::vector<int>& goes) {
  constexpr auto kKept = static_cast<size_t>(Placement::kKeep);
  const auto state = static_cast<size_t>(plan.update == UpdatePlace::kHost ? Placement::kHostSwap
                                                                           : Placement::kKeep);
  PlacementBytes bytes{};
  bytes[kKept] = cost.gradients + cost.stash * live.microbatches;
  bytes[kKept] += cost.parameters * (1 + live.weight_versions);
  bytes[state] += cost.optimizer_state;
  for (size_t index = 0; index < plan.groups.size(); ++index) {
    const auto& [group, choice] = plan.groups[index];
    const bool some = group.kind == GroupKind::kActivations && choice.placement != Placement::kKeep;
    const Bytes all = group.bytes * (some ? goes[index] : CopiesOf(group.kind, live));
    bytes[group.kind == GroupKind::kOptimizerState ? state : kKept] -= all;
    bytes[static_cast<size_t>(choice.placement)] += all;
  }
  return bytes;
}

bool EndsLife(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
}

// Of activations, what this worker's program swaps out or drops.
void CountGoing(const std::vector<Action>& program, std::vector<std::vector<int>>& goes) {
  std::map<std::pair<StageId, MicrobatchId>, std::vector<GroupId>> groups;
  for (const Action& action : program) {
    const bool leaves = action.kind == ActionKind::kSwapOut || action.kind == ActionKind::kDrop;
    const auto stage = static_cast<size_t>(action.stage.value);
    if (!leaves || action.microbatch == kNoMicrobatch || stage >= goes.size()) continue;
    groups[{action.stage, action.microbatch}].push_back(action.group);
  }
  std::map<std::pair<StageId, GroupId>, int> live;
  for (const Action& action : program) {
    const auto found = groups.find({action.stage, action.microbatch});
    if (found == groups.end()) continue;
    for (const GroupId group : found->second) {
      int& copies = live[{action.stage, group}];
      if (action.kind == ActionKind::kForward) ++copies;
      if (EndsLife(action.kind)) --copies;
      int& most = goes[static_cast<size_t>(action.stage.value)][static_cast<size_t>(group.value)];
      most = std::max(most, copies);
    }
  }
}

}  // namespace

std::vector<int> PeakLiveMicrobatches(const Schedule& schedule) {
  std::vector<int> live(static_cast<size_t>(StageCount(schedule)));
  std::vector<int> most = live;
  for (const std::vector<Action>& program : schedule.programs) {
    for (const Action& action : program) {
      const auto stage = static_cast<size_t>(action.stage.value);
      if (action.kind == ActionKind::kForward) most[stage] = std::max(most[stage], ++live[stage]);
      if (EndsLife(action.kind)) --live[stage];
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

std::vector<std::vector<int>> CopiesThatGo(const Schedule& programs, const MemoryPlan& memory) {
  const std::vector<LiveCopies> live = PeakLiveCopies(programs);
  std::vector<std::vector<int>> goes;
  for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
    std::vector<int>& of_stage = goes.emplace_back();
    for (const auto& [group, choice] : memory.stages[stage].groups) {
      const bool counted =
          group.kind != GroupKind::kActivations && choice.placement != Placement::kKeep;
      of_stage.push_back(counted ? CopiesAway(group.kind, live[stage]) : 0);
    }
  }
  for (const std::vector<Action>& program : programs.programs) CountGoing(program, goes);
  return goes;
}

std::vector<PlacementBytes> BytesByPlacement(const PlanText& plan) {
  const std::vector<LiveCopies> live = PeakLiveCopies(plan.training);
  const std::vector<std::vector<int>> goes = CopiesThatGo(plan.training, plan.memory);
  std::vector<PlacementBytes> stages;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const std::vector<StagePlan>& memory = plan.memory.stages;
    stages.push_back(BytesOf(plan.stages[stage].cost, memory.empty() ? StagePlan() : memory[stage],
                             live[stage], memory.empty() ? std::vector<int>() : goes[stage]));
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
