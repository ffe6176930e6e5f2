#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_LAYER_TO_LAYER_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_LAYER_TO_LAYER_H_

#include "planner/units.h"
#include "planner/weight_offload/weight_offload_plan.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// Layer to layer (Pudipeddi et al. 2020), to which the paper compares (sections 2 and 7): only the
// layer that computes is on the device, computation and transfers take turns. Before each forward
// its weight is fetched, as before each backward, while the link's other direction sends what the
// backward before it has changed. The last layer stays from its forward to its backward, the first
// one from its backward to its forward.
// The simulation refuses the plan where capacity is too small for it.
WeightOffloadPlan LayerToLayerPlan(const WeightOffloadProblem& problem);

// Its idle time, whatever the operations take: with in_i and out_i the transfer times,
//   sum of in_i, i = 2 .. L  +  sum of max(in_i, out_{i+1}), i = 1 .. L-1  +  out_1.
// Equal to the simulated one.
Nanos LayerToLayerIdle(const WeightOffloadProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_LAYER_TO_LAYER_H_
