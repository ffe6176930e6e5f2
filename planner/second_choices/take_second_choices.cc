#include "planner/second_choices/take_second_choices.h"

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

using GroupName = std::pair<StageId, GroupId>;

absl::Status HasNoSecondChoice(const GroupName& name, const PlannedGroup& planned) {
  return absl::FailedPreconditionError(
      absl::StrCat(GroupKindName(planned.group.kind), " of stage ", name.first.value, ", group ",
                   name.second.value, ", are with ", PlacementName(planned.choice.placement),
                   ", and the plan has no second choice for them"));
}

// Those that were swapped and are dropped now.
absl::StatusOr<std::set<GroupName>> ChangeChoices(MemoryPlan& memory, const ConcernsGroup& concerns,
                                                  const SecondStripes& stripes) {
  std::set<GroupName> dropped;
  for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
    std::vector<PlannedGroup>& groups = memory.stages[stage].groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      const GroupName name(static_cast<int>(stage), static_cast<int>(group));
      PlannedGroup& planned = groups[group];
      if (!concerns(name.first, planned)) continue;
      const Placement second = planned.choice.second_choice;
      const bool stays = StaysForHostStep(memory.stages[stage], planned);
      if (second == Placement::kKeep || (stays && second != Placement::kNvmeSwap)) {
        return HasNoSecondChoice(name, planned);
      }
      if (stays) {
        planned.choice.second_choice = Placement::kKeep;
        continue;
      }
      if (second == Placement::kRecompute) dropped.insert(name);
      const bool steps_on_host = StepsOnHost(memory.stages[stage], planned);
      planned.choice = {.placement = second};
      // Another place does not change where a layer steps.
      planned.choice.steps_on_device = !steps_on_host && StepsOnHost(memory.stages[stage], planned);
      if (second != Placement::kPeerSwap) continue;
      const auto found = stripes.find(name);
      if (found == stripes.end()) return HasNoSecondChoice(name, planned);
      planned.choice.stripes = found->second;
    }
  }
  return dropped;
}

std::vector<Action> WithDrops(const std::vector<Action>& program,
                              const std::set<GroupName>& dropped) {
  std::vector<Action> changed;
  changed.reserve(program.size());
  for (Action action : program) {
    const bool concerned = IsMemory(action.kind) && dropped.contains({action.stage, action.group});
    if (concerned && action.kind != ActionKind::kSwapOut) continue;
    if (concerned) action.kind = ActionKind::kDrop;
    changed.push_back(action);
  }
  return changed;
}

}  // namespace

bool WouldGo(const PlannedGroup& planned, Placement second) {
  return IsSwap(planned.choice.placement) && planned.choice.second_choice == second;
}

bool StaysForHostStep(const StagePlan& stage, const PlannedGroup& planned) {
  const auto& [group, choice] = planned;
  if (choice.placement != Placement::kHostSwap || IsPassing(group.kind)) return false;
  return group.kind == GroupKind::kOptimizerState ? StepsOnHost(stage, planned)
                                                  : AnyStepsOnHost(stage, group.layers);
}

absl::StatusOr<FollowedPlan> TakeSecondChoices(FollowedPlan plan, const ConcernsGroup& concerns,
                                               const SecondStripes& stripes) {
  SIPHON_ASSIGN_OR_RETURN(const std::set<GroupName> dropped,
                          ChangeChoices(plan.memory, concerns, stripes));
  if (dropped.empty()) return plan;
  for (std::vector<Action>& program : plan.schedule.programs) {
    program = WithDrops(program, dropped);
  }
  return plan;
}

}  // namespace siphon
