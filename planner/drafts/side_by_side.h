#ifndef SIPHON_PLANNER_DRAFTS_SIDE_BY_SIDE_H_
#define SIPHON_PLANNER_DRAFTS_SIDE_BY_SIDE_H_

#include <functional>

#include "planner/drafts/planning_problem.h"

namespace siphon {

// Calls run(0) to run(count - 1), which want nothing of each other: at once where whoever plans has
// threads for it, otherwise one after the other.
inline void RunSideBySide(const PlanningProblem& problem, int count,
                          const std::function<void(int)>& run) {
  if (problem.side_by_side.run) return problem.side_by_side.run(count, run);
  for (int index = 0; index < count; ++index) run(index);
}

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_SIDE_BY_SIDE_H_
