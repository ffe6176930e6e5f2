#ifndef SIPHON_LAUNCH_PROFILE_PLAN_LIVE_STEP_H_
#define SIPHON_LAUNCH_PROFILE_PLAN_LIVE_STEP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/planning_problem.h"
#include "swap/parking_layout.h"

namespace siphon {

// A step as workers run it, with the room for what they park.
struct LiveStep {
  PlanningProblem problem;  // held: with all that each worker lends, whether it is in use or not
  PlannedStep step;
  std::vector<WorkerParking> parking;  // [worker]
};

// The plan of a strategy of planner/strategies, for workers as they are: they move activations
// alone, so that weights and optimizer state count as held; and room for what is parked is set
// aside from before the first step until the end, so that what a worker lends counts beside its own
// fullest moment, and what goes to the host is there all at once.
//
// Pure. Requires: one replica. Errors: as the strategy; ResourceExhausted when there is not that
// room, with who is how much short.
absl::StatusOr<LiveStep> PlanLiveStep(PlanningProblem problem, const MemoryStrategy& strategy);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PLAN_LIVE_STEP_H_
