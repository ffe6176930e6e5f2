#ifndef SIPHON_PLANNER_LOWERING_SETTLE_PLAN_H_
#define SIPHON_PLANNER_LOWERING_SETTLE_PLAN_H_

#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"

namespace siphon {

// Takes out of a plan what its programs do not do. Activations and weight versions stay where they
// are, without a second choice, when no action moves or drops their group: a backward that follows
// its forward at once leaves them no time. Stages of which no layer steps on the host step on the
// device. Lowered again the plan gives the same programs.
void SettlePlan(const Schedule& programs, const StagePartition& partition, MemoryPlan& memory);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWERING_SETTLE_PLAN_H_
