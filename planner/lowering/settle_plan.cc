#include "planner/lowering/settle_plan.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/steps_on_host.h"

namespace siphon {
namespace {

// [stage][group]: whether an action moves or drops it.
std::vector<std::vector<bool>> GroupsThatLeave(const Schedule& programs, const MemoryPlan& memory) {
  std::vector<std::vector<bool>> leave;
  for (const StagePlan& stage : memory.stages) leave.emplace_back(stage.groups.size());
  for (const std::vector<Action>& program : programs.programs) {
    for (const Action& action : program) {
      if (!IsMemory(action.kind)) continue;
      std::vector<bool>& groups = leave[static_cast<size_t>(action.stage.value)];
      if (action.group == kWholeStage) {
        groups.assign(groups.size(), true);
      } else {
        groups[static_cast<size_t>(action.group.value)] = true;
      }
    }
  }
  return leave;
}

}  // namespace

void SettlePlan(const Schedule& programs, const StagePartition& partition, MemoryPlan& memory) {
  const std::vector<std::vector<bool>> leave = GroupsThatLeave(programs, memory);
  for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
    StagePlan& plan = memory.stages[stage];
    for (size_t group = 0; group < plan.groups.size(); ++group) {
      auto& [tensors, choice] = plan.groups[group];
      if (IsPassing(tensors.kind) && !leave[stage][group]) choice = {};
    }
    if (plan.update != UpdatePlace::kHost || AnyStepsOnHost(plan, partition.stages[stage])) {
      continue;
    }
    plan.update = UpdatePlace::kDevice;
    for (PlannedGroup& planned : plan.groups) planned.choice.steps_on_device = false;
  }
}

}  // namespace siphon
