#ifndef SIPHON_PLANNER_LOWERING_ELEMENT_STATE_H_
#define SIPHON_PLANNER_LOWERING_ELEMENT_STATE_H_

#include "planner/model_profile.h"

namespace siphon {

// Whether the optimizer keeps something of each element of the parameters, and not a count alone:
// by that, layers share the host's step, and without it stepping there makes no room.
bool HasStateOfElements(const ModelProfile& profile);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWERING_ELEMENT_STATE_H_
