#ifndef SIPHON_LAUNCH_PROFILE_PLAN_LIVE_STEP_H_
#define SIPHON_LAUNCH_PROFILE_PLAN_LIVE_STEP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory/memory_estimate.h"
#include "planner/strategies/memory_strategy.h"
#include "swap/parking_layout.h"

namespace siphon {

// A step as workers run it, with the room for what they park.
struct LiveStep {
  // held: with all that each worker lends, whether it is in use or not, and what the simulator does
  // not see of its fullest moment.
  PlanningProblem problem;
  PlannedStep step;
  std::vector<WorkerParking> parking;  // [worker]
  std::vector<Bytes> host_steps;       // [worker]: HostStepBytes
};

// The plan of a strategy of planner/strategies, for workers as they are: room for what is parked is
// set aside from before the first step until the end, so that what a worker lends counts beside its
// own fullest moment, and what goes to the host is there all at once, with what optimizer steps
// there take.
//
// `shared_gradients` is SharedGradientBytes, for which each worker has room from its REDUCE_GRAD
// on; empty: nothing. `inputs`: as for HostStepBytes.
//
// Pure. Requires: one replica. Errors: as the strategy; ResourceExhausted when there is not that
// room, with who is how much short.
absl::StatusOr<LiveStep> PlanLiveStep(PlanningProblem problem, const MemoryStrategy& strategy,
                                      const std::vector<Bytes>& shared_gradients = {},
                                      const MemoryInputs* inputs = nullptr);

// A step that is planned already, likewise. Errors: ResourceExhausted when there is not that room,
// with who is how much short; as the simulator.
absl::StatusOr<LiveStep> LiveStepOf(PlanningProblem problem, PlannedStep step,
                                    const std::vector<Bytes>& shared_gradients = {},
                                    const MemoryInputs* inputs = nullptr);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PLAN_LIVE_STEP_H_
