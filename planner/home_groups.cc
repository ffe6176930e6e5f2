#include "planner/home_groups.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/steps_on_host.h"

namespace siphon {
namespace {

bool MayBeHome(const StagePlan& stage, const PlannedGroup& planned) {
  return planned.group.kind == GroupKind::kOptimizerState && IsSwap(planned.choice.placement) &&
         !StepsOnHost(stage, planned);
}

bool AnyMayBeHome(const MemoryPlan& plan) {
  return std::any_of(plan.stages.begin(), plan.stages.end(), [](const StagePlan& stage) {
    return std::any_of(stage.groups.begin(), stage.groups.end(),
                       [&stage](const PlannedGroup& planned) { return MayBeHome(stage, planned); });
  });
}

}  // namespace

HomeGroups HomeGroupsOf(const std::vector<Action>& program, const MemoryPlan& plan) {
  HomeGroups home;
  if (!AnyMayBeHome(plan)) return home;
  std::vector<std::vector<bool>> seen;  // [stage][group]
  for (const StagePlan& stage : plan.stages) seen.emplace_back(stage.groups.size(), false);
  for (const Action& action : program) {
    if (HasMicrobatch(action) || !IsMemory(action.kind) || action.group == kWholeStage) continue;
    const auto stage = static_cast<size_t>(action.stage.value);
    const auto group = static_cast<size_t>(action.group.value);
    if (stage >= seen.size() || group >= seen[stage].size() || seen[stage][group]) continue;
    seen[stage][group] = true;
    if (action.kind != ActionKind::kSwapOut) continue;
    if (!MayBeHome(plan.stages[stage], plan.stages[stage].groups[group])) continue;
    home.emplace(action.stage, action.group);
  }
  return home;
}

HomeGroups HomeGroupsOf(const Schedule& schedule, const MemoryPlan& plan) {
  HomeGroups home;
  for (const std::vector<Action>& program : schedule.programs)
    home.merge(HomeGroupsOf(program, plan));
  return home;
}

}  // namespace siphon
