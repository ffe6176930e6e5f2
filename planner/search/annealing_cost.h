#ifndef SIPHON_PLANNER_SEARCH_ANNEALING_COST_H_
#define SIPHON_PLANNER_SEARCH_ANNEALING_COST_H_

#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// What simulated annealing compares drafts by: the step time, of one that does not fit so many
// times as long as it is over the largest capacity, so that a way through what does not fit is
// open.
class AnnealingCost {
 public:
  explicit AnnealingCost(const PlanningProblem& problem);
  // In nanoseconds.
  double Of(const SimulatedDraft& simulated) const;

 private:
  Bytes largest_{1};  // capacity
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_ANNEALING_COST_H_
