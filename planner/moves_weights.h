#ifndef SIPHON_PLANNER_MOVES_WEIGHTS_H_
#define SIPHON_PLANNER_MOVES_WEIGHTS_H_

#include "planner/memory_plan.h"

namespace siphon {

// Whether parameters or gradients of the group are away at times.
bool MovesWeights(const PlannedGroup& planned);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MOVES_WEIGHTS_H_
