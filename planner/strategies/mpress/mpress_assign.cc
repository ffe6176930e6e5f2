#include "planner/strategies/mpress/mpress_assign.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>

#include "planner/strategies/mpress/mpress_rule.h"
#include "planner/strategies/mpress/mpress_times.h"

namespace siphon {
namespace {

struct Candidate {
  int stage = 0;
  int group = 0;
  DeviceId device;
  Nanos live_interval;
};

// Longest live interval first, then the earliest layers.
std::vector<Candidate> CandidatesOf(const PlanningProblem& problem, const DeviceMapping& mapping,
                                    const MemoryPlan& plan, const MpressFacts& facts,
                                    const std::vector<bool>& saves) {
  std::vector<Candidate> candidates;
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage) {
    const int worker = problem.schedule.worker_of_stage[stage].value;
    if (!saves[worker]) continue;
    const std::vector<PlannedGroup>& groups = plan.stages[stage].groups;
    for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
      if (!IsPassing(groups[group].group.kind)) continue;
      candidates.push_back(
          {stage, group, mapping.device_of_worker[worker], facts.live_intervals[stage][group]});
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::make_tuple(b.live_interval, a.stage, a.group) <
           std::make_tuple(a.live_interval, b.stage, b.group);
  });
  return candidates;
}

}  // namespace

MemoryPlan AssignWithoutPeers(const PlanningProblem& problem, const DeviceMapping& mapping,
                              MemoryPlan plan, const MpressFacts& facts,
                              const std::vector<bool>& saves) {
  // Of a slot, by switch; -1: all workers together, where there is no topology.
  std::map<int, Nanos> uplink_use;
  for (const Candidate& candidate : CandidatesOf(problem, mapping, plan, facts, saves)) {
    auto& [group, choice] = plan.stages[candidate.stage].groups[candidate.group];
    TensorTimes times{.live_interval = candidate.live_interval};
    if (group.kind == GroupKind::kActivations) times.recompute = group.recompute;
    Nanos* use = nullptr;
    Nanos one_way;
    if (const std::optional<HostPaths> host = HostPathsOf(problem, candidate.device)) {
      times.host_swap = RoundTrip(group.bytes, host->out, host->in);
      use = &uplink_use[SwitchOf(problem.topology, candidate.device).value_or(-1)];
      one_way = UplinkTime(problem, candidate.device, group.bytes);
      if (*use + one_way > facts.slot) times.live_interval = Nanos(0);
    }
    choice = {.placement = MpressChoice(times)};
    if (choice.placement == Placement::kHostSwap) *use += one_way;
  }
  return plan;
}

Bytes SendOptimizerToHost(const Schedule& schedule, WorkerId worker, Bytes bytes,
                          MemoryPlan& plan) {
  Bytes saved;
  const std::vector<StageId> stages = StagesOf(schedule, worker);
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    std::vector<PlannedGroup>& groups = plan.stages[stage->value].groups;
    for (auto planned = groups.rbegin(); planned != groups.rend(); ++planned) {
      const bool stays = planned->group.kind == GroupKind::kOptimizerState &&
                         planned->choice.placement == Placement::kKeep;
      if (!stays || saved >= bytes) continue;
      planned->choice.placement = Placement::kHostSwap;
      saved += planned->group.bytes;
    }
  }
  return saved;
}

int RecomputeInstead(const Schedule& schedule, WorkerId worker, int most, MemoryPlan& plan) {
  int changed = 0;
  const std::vector<StageId> stages = StagesOf(schedule, worker);
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    std::vector<PlannedGroup>& groups = plan.stages[stage->value].groups;
    for (auto planned = groups.rbegin(); planned != groups.rend(); ++planned) {
      const bool goes = planned->group.kind == GroupKind::kActivations &&
                        planned->choice.placement == Placement::kHostSwap;
      if (!goes || changed == most) continue;
      planned->choice.placement = Placement::kRecompute;
      ++changed;
    }
  }
  return changed;
}

}  // namespace siphon
