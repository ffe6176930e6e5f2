#ifndef SIPHON_PLANNER_SEARCH_STATE_HOME_H_
#define SIPHON_PLANNER_SEARCH_STATE_HOME_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// Lets the optimizer state that the draft swaps be home between steps, when there are no
// activations: all of it where a worker has room for all its weights, gradients and state, else but
// for the first layers that make the difference. Whether enough of them are swapped is not looked
// at.
void KeepStateHome(const PlanningProblem& problem, DraftPlan& draft);

bool HasStateHome(const DraftPlan& draft);

// Of how many layers of the stage optimizer state is swapped.
int SwappedState(const StageDraft& stage);
// Of them, how many are away between steps; the others are home then.
int StateAwayBetweenSteps(const StageDraft& stage);

// What the strategies that swap to one place try with optimizer state at home between steps: the
// best of all places. `kept` is a simulation of a draft that keeps everything. Errors:
// ResourceExhausted where none came to a simulation; else as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> BestSwapWithStateHome(DraftSimulator& simulator,
                                                     const SimulatedDraft& kept);

// The draft with nothing else changed, and copies of what is home spread evenly over the begin and
// the end of the step: the best of some times. Errors: likewise.
absl::StatusOr<SimulatedDraft> SpreadStateHome(DraftSimulator& simulator, const DraftPlan& draft);

// The best of those, of `best` with nothing else changed, and of mixed starts. Errors: likewise.
absl::StatusOr<SimulatedDraft> BestWithStateHome(DraftSimulator& simulator,
                                                 const SimulatedDraft& best,
                                                 const SimulatedDraft& kept);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_STATE_HOME_H_
