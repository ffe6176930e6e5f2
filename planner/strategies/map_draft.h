#ifndef SIPHON_PLANNER_STRATEGIES_MAP_DRAFT_H_
#define SIPHON_PLANNER_STRATEGIES_MAP_DRAFT_H_

#include "absl/status/statusor.h"
#include "planner/strategies/draft_simulator.h"

namespace siphon {

// The draft with its workers where what is too much for them reaches lenders fastest (MapDevices):
// each lends what it has left at its fullest, in `simulated`, a simulation of the draft. As it is
// where the problem has a mapping or replicas, or the topology no devices.
// Errors: as MapDevices.
absl::StatusOr<DraftPlan> MapToLenders(const PlanningProblem& problem,
                                       const SimulatedDraft& simulated);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MAP_DRAFT_H_
