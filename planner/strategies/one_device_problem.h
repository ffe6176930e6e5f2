#ifndef SIPHON_PLANNER_STRATEGIES_ONE_DEVICE_PROBLEM_H_
#define SIPHON_PLANNER_STRATEGIES_ONE_DEVICE_PROBLEM_H_

#include "absl/status/statusor.h"
#include "planner/drafts/planning_problem.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// The weight offloading paper's setting (hal-03580767, section 3) for the planner of pipelines: one
// stage on one device, one microbatch, the same times, sizes, capacity and link.
//
// The paper's backward updates its weight, which then leaves; a pipeline's step updates at its end.
// So the host makes the update here, in no time (1 ns): a layer's gradient, as large as its weight,
// leaves behind its backward in place of the weight, and new weights come from the host. Any plan
// of this that fits is one of the paper's, so that its bounds hold. The reverse does not:
// - steps do not overlap: the first transfers of a forward, of a backward, and the last are waited
//   for;
// - a gradient that is away comes in to be added to, also in the first microbatch, so that room for
//   three of them is needed;
// - with the host's update all gradients leave, also those of weights that stay.
// Requires: a problem that passes CheckWeightOffloadProblem. Errors: none.
absl::StatusOr<PlanningProblem> OneDeviceProblem(const WeightOffloadProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_ONE_DEVICE_PROBLEM_H_
