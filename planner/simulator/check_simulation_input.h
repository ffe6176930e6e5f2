#ifndef SIPHON_PLANNER_SIMULATOR_CHECK_SIMULATION_INPUT_H_
#define SIPHON_PLANNER_SIMULATOR_CHECK_SIMULATION_INPUT_H_

#include "absl/status/status.h"
#include "planner/simulator/simulate.h"

namespace siphon {

// Sizes that match each other, no negative figure, devices that exist and take one worker each.
// Requires: the schedule's worker_of_stage names its workers. Errors: InvalidArgument.
absl::Status CheckSimulationInput(const SimulationInput& input);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_CHECK_SIMULATION_INPUT_H_
