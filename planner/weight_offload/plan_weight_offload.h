#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_PLAN_WEIGHT_OFFLOAD_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_PLAN_WEIGHT_OFFLOAD_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/weight_offload/schedule_removals.h"
#include "planner/weight_offload/select_removals.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

struct WeightOffloadChoice {
  std::vector<Removal> removals;
  CuttingPoint cut;
  ScheduledRemovals scheduled;
};

// The paper's Greedy, or Greedy*: selects removals, schedules them for every cutting point, and
// returns the shortest step, of equal ones that with the smallest cut. O(L^3).
// Errors: as for CheckWeightOffloadProblem.
absl::StatusOr<WeightOffloadChoice> PlanWeightOffload(const WeightOffloadProblem& problem,
                                                      Discount discount,
                                                      Ties ties = Ties::kLastLayer);

// Better than the paper's: the selections of Greedy and of Greedy*, with ties either way, all
// scheduled with the discount, the shortest step of the four; then every removal without which the
// step is no longer is dropped, the last selected first. (Algorithm 1 looks at memory alone, so it
// lets weights leave that must be back at once.) Never longer than Greedy.
// Errors and complexity as above.
absl::StatusOr<WeightOffloadChoice> PlanTrimmedWeightOffload(const WeightOffloadProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_PLAN_WEIGHT_OFFLOAD_H_
