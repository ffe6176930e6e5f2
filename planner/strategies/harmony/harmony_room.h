#ifndef SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_ROOM_H_
#define SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_ROOM_H_

#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/stage_cost.h"
#include "planner/strategies/harmony/harmony_search.h"

namespace siphon {

// By how much at least the choice's step is over a worker's capacity, whatever its times: what is
// kept, and the stage that steps, or what all forwards have left for the backwards. 0: it may fit.
// `costs` are of the choice's partition, which the problem has, and its schedule.
Bytes LeastExcess(const PlanningProblem& problem, const std::vector<StageCost>& costs,
                  const HarmonyChoice& choice);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_ROOM_H_
