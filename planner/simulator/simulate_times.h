#ifndef SIPHON_PLANNER_SIMULATOR_SIMULATE_TIMES_H_
#define SIPHON_PLANNER_SIMULATOR_SIMULATE_TIMES_H_

#include "absl/status/statusor.h"
#include "planner/simulator/lent_memory.h"
#include "planner/simulator/simulate.h"
#include "planner/simulator/simulated_step.h"
#include "planner/simulator/step_runs.h"

namespace siphon {

// What searches need of a step.
struct StepTimes {
  SimulatedStep step;  // without lanes and curves of memory, else the same as Simulate's
  LentMemory lent;     // empty unless asked for
  friend bool operator==(const StepTimes&, const StepTimes&) = default;
};

// What simulations use one after the other: memory, and the latest runs, of whose beginnings the
// next one makes use. It changes nothing of what they answer.
struct SimulationSpace {
  StepRuns runs;
};

enum class LendingDetail { kNone, kLent };

// Simulate for those who simulate often and look at little of it. What a schedule proves by its
// making is not checked again: that actions find activations and groups where they need them.
//
// Requires: CheckResidency of schedule and plan; kLent: one replica. Errors: as Simulate.
absl::StatusOr<StepTimes> SimulateTimes(const SimulationInput& input, LendingDetail lending,
                                        SimulationSpace& space);
absl::StatusOr<StepTimes> SimulateTimes(const SimulationInput& input,
                                        LendingDetail lending = LendingDetail::kNone);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_SIMULATE_TIMES_H_
