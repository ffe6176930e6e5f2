#ifndef SIPHON_PLANNER_PLAN_FILE_CHECK_MEMORY_H_
#define SIPHON_PLANNER_PLAN_FILE_CHECK_MEMORY_H_

#include "absl/status/status.h"
#include "planner/plan_file/check_plan.h"

namespace siphon {

// The part of CheckPlan about tensor groups: they lie within their stage, go where tensors of
// their kind can, and stripes add up to the group's bytes, each with another lender, which is a
// device that there is and that the topology, if the plan has one, links with the owner's both
// ways. Requires: CheckMapping. Whether the programs move them as the choices say is for Simulate.
absl::Status CheckGroups(const PlanText& plan, const PlanPlaces& places);

// That each device exists and has one worker.
absl::Status CheckMapping(const PlanText& plan, const PlanPlaces& places);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_CHECK_MEMORY_H_
