#ifndef SIPHON_PLANNER_SECOND_CHOICES_COMPUTING_AGAIN_H_
#define SIPHON_PLANNER_SECOND_CHOICES_COMPUTING_AGAIN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory/memory_kind.h"
#include "planner/memory_plan.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/units.h"

namespace siphon {

// [worker]: what each holds at most once groups whose second choice is to be computed again take
// it: those of any one tier, or all of them. At least `peak`, what it holds by the plan as it is at
// its fullest moment with all that it lends; computing again adds to that what it adds to the
// worker's own fullest moment, so that others may go on with their tensors there meanwhile.
//
// `held_to_recompute`: [worker] as PlanningProblem::held, of workers that compute groups again,
// where that takes more. Pure. Requires: the plan is one of the problem's, without replicas.
// Errors: FailedPrecondition where the programs cannot run so; as the simulator.
absl::StatusOr<std::vector<Bytes>> PeaksComputingAgain(
    const PlanningProblem& problem, const DeviceMapping& mapping, const FollowedPlan& plan,
    const std::vector<Bytes>& peak, const std::vector<MemoryByKind>& held_to_recompute);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SECOND_CHOICES_COMPUTING_AGAIN_H_
