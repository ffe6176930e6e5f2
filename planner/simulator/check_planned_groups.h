#ifndef SIPHON_PLANNER_SIMULATOR_CHECK_PLANNED_GROUPS_H_
#define SIPHON_PLANNER_SIMULATOR_CHECK_PLANNED_GROUPS_H_

#include "absl/status/status.h"
#include "planner/simulator/simulate.h"

namespace siphon {

// What Simulate asks of its memory plan before anything else: groups of layers that their stage
// has, of which no two have the same tensors; activations of as many bytes as their layers save;
// stripes that add up, on devices that there are and that links join with the stage's; a drive
// where one is needed. Requires: `layers` is empty or has an entry a stage.
//
// Errors: InvalidArgument.
absl::Status CheckPlannedGroups(const SimulationInput& input);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_CHECK_PLANNED_GROUPS_H_
