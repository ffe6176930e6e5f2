#ifndef SIPHON_PLANNER_LOWERING_CHECK_LOWERING_H_
#define SIPHON_PLANNER_LOWERING_CHECK_LOWERING_H_

#include "absl/status/status.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

// What LowerMemoryPlan asks of what it is given. Errors: as LowerMemoryPlan.
absl::Status CheckLowering(const Schedule& schedule, const MemoryPlan& plan,
                           const LowerMemoryOptions& options);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWERING_CHECK_LOWERING_H_
