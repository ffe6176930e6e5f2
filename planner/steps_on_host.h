#ifndef SIPHON_PLANNER_STEPS_ON_HOST_H_
#define SIPHON_PLANNER_STEPS_ON_HOST_H_

#include <vector>

#include "planner/memory_plan.h"

namespace siphon {

// Of a stage with UpdatePlace::kHost, the host steps what its plan has with the host: groups of
// optimizer state that are planned as kHostSwap, unless they say otherwise
// (GroupChoice::steps_on_device), and layers without a group of it. Other groups of it step on the
// device, as they do in a stage with kDevice.

// That the group is optimizer state of the stage which stays with the host.
bool StepsOnHost(const StagePlan& stage, const PlannedGroup& planned);
bool StepsOnHost(const StagePlan& stage, int layer);
// Any of them.
bool AnyStepsOnHost(const StagePlan& stage, const StageRange& layers);
// All of them.
bool AllStepOnHost(const StagePlan& stage, const StageRange& layers);

// Layers of the model, ascending, of which a stage with these plans would step its own on the host:
// in as few ranges as can be. Empty with kDevice.
std::vector<StageRange> LayersSteppedOnHost(const StagePlan& stage);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STEPS_ON_HOST_H_
