#ifndef SIPHON_PLANNER_GROUP_BOOKS_H_
#define SIPHON_PLANNER_GROUP_BOOKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/group_state.h"
#include "planner/home_groups.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/steps_on_host.h"
#include "planner/weight_stashes.h"

namespace siphon {

// Where a group's tensors are just now.
struct GroupBook {
  GroupState state = GroupState::kAbsent;
  bool changed = false;  // there is no copy elsewhere that still holds
  int since = -1;        // place of the action that brought it there
};

// What one worker's tensor groups are at a place of its program, and how to speak of them.
class GroupBooks {
 public:
  // Schedule and plan must outlive this. As a step begins: what is there once is away, or home.
  GroupBooks(const Schedule& schedule, const MemoryPlan& plan, int worker);

  const std::vector<Action>& program() const { return program_; }
  const WeightStashes& stashes() const { return stashes_; }
  const std::vector<PlannedGroup>& GroupsOf(StageId stage) const;
  const TensorGroup& GroupAt(StageId stage, int group) const {
    return GroupsOf(stage)[group].group;
  }
  bool UpdatesOnHost(StageId stage) const {
    return !plan_.stages.empty() && plan_.stages[stage.value].update == UpdatePlace::kHost;
  }
  bool StepsOnHost(StageId stage, const StageRange& layers) const {
    return !plan_.stages.empty() && AllStepOnHost(plan_.stages[stage.value], layers);
  }
  // That the group, of optimizer state, is there between steps.
  bool IsHome(StageId stage, int group) const { return home_.contains({stage, GroupId(group)}); }
  // A group that moves, or may.
  bool IsFollowed(StageId stage, int group) const;

  // Of the group of the stage of the action at that place. Activations have a book each microbatch,
  // weight versions one each UPDATE's, other groups one.
  // Requires, for weight versions: a memory action, or one that goes by a stash or makes one.
  GroupBook& BookOf(int place, int group);

  // Changes the book as TransitionsOf says. Errors: FailedPrecondition for a state in which the
  // action may not come.
  absl::Status Follow(int place, int group);

  // "group 2 of stage 0 (activations of layers 3 to 5) of microbatch 1"
  std::string Name(int place, int group) const;
  // FailedPrecondition at the place: "worker 1 has 1F0, which needs <group> <wanted>, but it is
  // ...".
  absl::Status BadState(int place, int group, absl::string_view wanted);
  // "worker 1 has 1F0<complaint>".
  absl::Status Bad(int place, absl::string_view complaint) const;

 private:
  const Schedule& schedule_;
  const MemoryPlan& plan_;
  const int worker_;
  const std::vector<Action>& program_;
  const WeightStashes stashes_;
  const HomeGroups home_;
  std::vector<std::vector<GroupBook>> books_;  // [stage][microbatch * groups + group]
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_GROUP_BOOKS_H_
