#ifndef SIPHON_LAUNCH_PROFILE_PREDICT_STEP_H_
#define SIPHON_LAUNCH_PROFILE_PREDICT_STEP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan_text.h"
#include "planner/simulator/simulate.h"

namespace siphon {

// What a plan's training program takes, by the costs that the plan has, with its memory plan on its
// topology.
SimulationInput SimulationInputOf(const PlanText& plan);

// `plan` with all that `input` says: SimulationInputOf(WithSimulationInput(plan, input)) takes the
// same step. Names, layers and the evaluation stay. What is held beside communication becomes
// slack. Requires: `input` has the plan's stages on the plan's workers.
PlanText WithSimulationInput(PlanText plan, const SimulationInput& input);

// Validates the plan's training program, then simulates it. Errors: as of ValidateSchedule and
// Simulate (FailedPrecondition and ResourceExhausted show the grid with "<-- here").
absl::StatusOr<SimulatedStep> PredictStep(const PlanText& plan);

// What a plan file remembers of a prediction. `lower_bound` 0: not known.
PlanPrediction PredictionOf(const SimulatedStep& step, Nanos lower_bound);

// Capacity of each worker; empty when none has one.
std::vector<Bytes> CapacityOf(const PlanText& plan);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PREDICT_STEP_H_
