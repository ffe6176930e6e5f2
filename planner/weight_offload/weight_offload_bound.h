#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_BOUND_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_BOUND_H_

#include "planner/units.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// Bytes that must come back in every step, whatever the plan. In the operations of layer j at least
// the overflow of B_j is away; of layers before j between their F and B, of layers behind it
// between B and F. Each such absence is one fetch, so the least is a covering of sliding windows,
// for which taking from the far end is best (fractions of weights allowed). O(L^2).
Bytes LeastFetchedBytes(const WeightOffloadProblem& problem);

// No plan has a shorter step, with or without discount, also one whose transfers cross from one
// step into the next. The greatest of: all operations; the least bytes over the link, each way; and
// for each two operations a, b with too little computation between them, all operations and the
// wait for what must be fetched after a and before b, or sent. (The paper's integer program,
// offload_program_bound.h, is stronger where transfers compete, and weaker where memory is full
// until an operation ends. Both are 0 idle in all of Table 1.) O(L^2).
// Requires: a problem that passes CheckWeightOffloadProblem.
Nanos WeightOffloadBound(const WeightOffloadProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_BOUND_H_
