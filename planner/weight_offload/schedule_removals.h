#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_SCHEDULE_REMOVALS_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_SCHEDULE_REMOVALS_H_

#include <optional>
#include <vector>

#include "planner/units.h"
#include "planner/weight_offload/select_removals.h"
#include "planner/weight_offload/weight_offload_plan.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// Which transfers are done when a step begins with B_L. Around that moment transfers come in one
// order: the sends after F, in forward order, then the fetches for B, in backward order. `early`
// fetches of the next step belong to this one, or `late` sends to the next step.
struct CuttingPoint {
  int early = 0;
  int late = 0;
  friend bool operator==(const CuttingPoint&, const CuttingPoint&) = default;
};

struct ScheduledRemovals {
  WeightOffloadPlan plan;
  Nanos step_time;  // what the algorithm claims; the simulation of the plan gives the same
};

// Algorithm 2 for one cutting point: operations and transfers in turn, each as early as its lane,
// its data and memory allow. While no other send is due, weights that leave after their forward are
// sent before it, smallest first.
// As the paper has it, but for two things. It looks for such idle time only before sends that
// follow a backward; we also do before those that follow a forward, because a removal between
// forward and backward would else never be sent early where no other kind is chosen. And it says
// "before the cutting point" without saying in which order transfers stand: see CuttingPoint.
// Nothing if memory never has room with this cutting point. Requires: a problem that passes
// CheckWeightOffloadProblem; cutting points within NumSendsAfterForward and NumFetchesForBackward,
// one of them 0. O(L^2), near O(L) where little waits for memory.
std::optional<ScheduledRemovals> ScheduleRemovals(const WeightOffloadProblem& problem,
                                                  const std::vector<Removal>& removals,
                                                  Discount discount, CuttingPoint cut);
int NumFetchesForBackward(const std::vector<Removal>& removals);
// Of weights that are not on the host already because they were sent after their backward.
int NumSendsAfterForward(const std::vector<Removal>& removals, Discount discount);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_SCHEDULE_REMOVALS_H_
