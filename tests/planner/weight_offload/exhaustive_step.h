#ifndef SIPHON_TESTS_PLANNER_WEIGHT_OFFLOAD_EXHAUSTIVE_STEP_H_
#define SIPHON_TESTS_PLANNER_WEIGHT_OFFLOAD_EXHAUSTIVE_STEP_H_

#include <optional>

#include "planner/units.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// The shortest step of all plans that move whole weights, begin it with idle links and leave every
// weight where they found it: a search of all states, one time unit after the other. Transfers may
// begin at any time, and weights may travel as often as they like.
// Nothing if none is shorter than `limit`. Exact where all times, transfers included, are small
// whole nanoseconds: a plan can always be shifted to begin everything at whole ones.
// Requires: at most 4 layers, all with a weight, times below 8.
std::optional<Nanos> ShortestStepBySearch(const WeightOffloadProblem& problem, Nanos limit);

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_WEIGHT_OFFLOAD_EXHAUSTIVE_STEP_H_
