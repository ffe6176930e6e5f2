#ifndef SIPHON_PLANNER_DRAFTS_FIT_MOVES_H_
#define SIPHON_PLANNER_DRAFTS_FIT_MOVES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/move_lists.h"

namespace siphon {

// `draft` with the least number of each worker's moves with which every worker fits, found by
// bisection of all workers at once: a worker's peak hangs on its own moves, and hardly on those of
// others. Where it does (more moves do not always hold less), more moves are taken, one at a time
// in the end. Moves that the host or the drives could not take all at once are looked for without
// that limit, which then has to hold for what was found. If that is not enough, or lenders have too
// little room, the best of what was tried.
//
// `near` is where large problems look first: [worker], how many moves that took for another draft
// like this one, or nothing; it becomes how many it took for this one.
//
// Errors: as DraftSimulator::Run. O(log(moves)) simulations, as a rule.
absl::StatusOr<SimulatedDraft> FitMoves(DraftSimulator& simulator, const DraftPlan& draft,
                                        const MoveLists& moves, std::vector<int>& near);
absl::StatusOr<SimulatedDraft> FitMoves(DraftSimulator& simulator, const DraftPlan& draft,
                                        const MoveLists& moves);

// The better one; errors lose, but for those that mean that the problem is wrong.
absl::StatusOr<SimulatedDraft> Better(absl::StatusOr<SimulatedDraft> a,
                                      absl::StatusOr<SimulatedDraft> b);

// The plan, checked against all limits. Errors: ResourceExhausted when it does not fit: names the
// worker that needs most beyond its capacity.
absl::StatusOr<PlannedStep> PlannedOf(const PlanningProblem& problem, SimulatedDraft simulated,
                                      absl::string_view strategy);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_FIT_MOVES_H_
