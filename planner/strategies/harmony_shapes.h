#ifndef SIPHON_PLANNER_STRATEGIES_HARMONY_SHAPES_H_
#define SIPHON_PLANNER_STRATEGIES_HARMONY_SHAPES_H_

#include <vector>

#include "planner/strategies/harmony_search.h"
#include "planner/strategies/planning_problem.h"

namespace siphon {

// The numbers of stages, packs, groups of microbatches and partitions that the search tries, for
// the problem's workers; everything kept. A partition is by time, by bytes, or in balance
// (HarmonyCutter); the more unlike the packs forward and backward, the fewer of them.
// Requires: a layer for each worker.
std::vector<HarmonyChoice> HarmonyShapes(const PlanningProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_HARMONY_SHAPES_H_
