#ifndef SIPHON_LAUNCH_PROFILE_PREDICT_STEP_H_
#define SIPHON_LAUNCH_PROFILE_PREDICT_STEP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan_text.h"
#include "planner/simulator/simulate.h"

namespace siphon {

// What a plan's training program takes, by the costs that the plan has.
SimulationInput SimulationInputOf(const PlanText& plan);

// Validates the plan's training program, then simulates it. Errors: as of ValidateSchedule and
// Simulate (FailedPrecondition and ResourceExhausted show the grid with "<-- here").
absl::StatusOr<SimulatedStep> PredictStep(const PlanText& plan);

// Capacity of each worker; empty when none has one.
std::vector<Bytes> CapacityOf(const PlanText& plan);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PREDICT_STEP_H_
