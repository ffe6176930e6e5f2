#ifndef SIPHON_PLANNER_HOME_GROUPS_H_
#define SIPHON_PLANNER_HOME_GROUPS_H_

#include <set>
#include <utility>
#include <vector>

#include "planner/action.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

// Groups of optimizer state that leave only in the middle of a step: by planner/memory_plan.h those
// whose first memory action is a SWAP_OUT. With their worker as a step begins, and again as it
// ends. Not those of stages that step on the host, which has their state.
using HomeGroups = std::set<std::pair<StageId, GroupId>>;

// Of one worker. O(actions). Actions on groups that the plan does not have are passed over.
HomeGroups HomeGroupsOf(const std::vector<Action>& program, const MemoryPlan& plan);
// Of all workers.
HomeGroups HomeGroupsOf(const Schedule& schedule, const MemoryPlan& plan);

}  // namespace siphon

#endif  // SIPHON_PLANNER_HOME_GROUPS_H_
