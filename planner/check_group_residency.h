#ifndef SIPHON_PLANNER_CHECK_GROUP_RESIDENCY_H_
#define SIPHON_PLANNER_CHECK_GROUP_RESIDENCY_H_

#include "absl/status/status.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

// Follows every tensor group of the plan through its worker's program, by the rules of
// planner/memory_plan.h: activations once a microbatch, other kinds once a step.
//
// Errors: InvalidArgument when the plan has another number of stages. FailedPrecondition with the
// grid, "<-- here" behind the action: one that names a group which the plan does not have, or does
// not send that way; one that means a whole stage where the plan has groups; one that finds a group
// in a state in which it cannot use it, drops what is nowhere else, or leaves a group where the
// next step does not look for it.
//
// O(actions * groups of a stage).
absl::Status CheckGroupResidency(const Schedule& schedule, const MemoryPlan& plan);

}  // namespace siphon

#endif  // SIPHON_PLANNER_CHECK_GROUP_RESIDENCY_H_
