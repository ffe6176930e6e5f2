#ifndef SIPHON_PLANNER_SECOND_CHOICES_HOST_ROOM_ON_DRIVES_H_
#define SIPHON_PLANNER_SECOND_CHOICES_HOST_ROOM_ON_DRIVES_H_

#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/second_choices/take_second_choices.h"

namespace siphon {

// `plan.memory` with second choices of what optimizer steps on the host work on there
// (StaysForHostStep): where the host does not give a worker its room for that, the room is a file
// on the worker's drive. All of a worker's groups have that choice or none, and each of them only
// where the drive has room for all of it, in every replica, beside all that the plan, its other
// second choices and the workers before it may have there at once.
//
// A worker's room: state, parameters and gradients of the layers that step on the host or are
// parked there for such a step. Pure. Requires: the schedule is LowerMemoryPlan's for the plan;
// other second choices are given already.
absl::StatusOr<MemoryPlan> WithHostRoomOnDrives(const PlanningProblem& problem,
                                                const DeviceMapping& mapping, FollowedPlan plan);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SECOND_CHOICES_HOST_ROOM_ON_DRIVES_H_
