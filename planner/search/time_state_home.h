#ifndef SIPHON_PLANNER_SEARCH_TIME_STATE_HOME_H_
#define SIPHON_PLANNER_SEARCH_TIME_STATE_HOME_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Whether any stage's optimizer state has times found by this.
bool IsStateTimed(const DraftPlan& draft);

// The draft with as much optimizer state at home between steps as there is room for, which leaves
// as late and comes back as early as each worker's memory allows: found by bisection of all workers
// at once, one time after the other. What is kept stays as it is; so does what steps on the host,
// unless SwapTiming::home_beside_host.
//
// Errors: as DraftSimulator::Run. O(stages of a worker * log(actions)) simulations.
absl::StatusOr<SimulatedDraft> TimeStateHome(DraftSimulator& simulator, DraftPlan draft);

// Only the times of these stages', of which the draft says how much is home, wherever it steps.
// Errors: likewise. O(log(actions)) simulations.
absl::StatusOr<SimulatedDraft> TimeStagesHome(DraftSimulator& simulator, DraftPlan draft,
                                              const std::vector<StageId>& stages);

// The draft with the state that is away between steps in as early as each worker's memory allows:
// as many groups as there is room for before the STEP, one after the other, likewise. What is home
// leaves and comes back as it does. Errors: likewise.
absl::StatusOr<SimulatedDraft> TimeStateIn(DraftSimulator& simulator, DraftPlan draft);

// The best of `best` so, and of starts that send optimizer state away before anything else.
// `kept` is a simulation of a draft that keeps everything. Errors: ResourceExhausted where none
// came to a simulation; else as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> BestWithTimedState(DraftSimulator& simulator,
                                                  const SimulatedDraft& best,
                                                  const SimulatedDraft& kept);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_TIME_STATE_HOME_H_
