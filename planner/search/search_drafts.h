#ifndef SIPHON_PLANNER_SEARCH_SEARCH_DRAFTS_H_
#define SIPHON_PLANNER_SEARCH_SEARCH_DRAFTS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/search/draft_changes.h"

namespace siphon {

// What all searches of `auto` have in common. `kept` is a simulation of a draft that keeps
// everything.

// Saving memory costs less than a thousandth of a step that keeps everything.
bool IsGood(const SimulatedDraft& draft, const SimulatedDraft& kept);

// The problem asks for no more than a plan that fits, and this is one.
bool IsEnough(const PlanningProblem& problem, const SimulatedDraft& draft);

// For who waits, before each of the searches; `best` is what there is until then.
void Tell(const PlanningProblem& problem, absl::string_view doing, const SimulatedDraft& best);

// Single changes first, as long as they help; then random ones, and once more single ones. Where a
// draft is good before, there is no more. Never worse than `draft`. Errors: as DraftSimulator::Run,
// but for ResourceExhausted.
absl::StatusOr<SimulatedDraft> SearchWith(WeightSearch weights, int simulations,
                                          DraftSimulator& simulator, SimulatedDraft draft,
                                          const SimulatedDraft& kept);

// The better of `draft` and of what is found from `start`, so that nothing is lost to trying; where
// there was no room for a start, `draft`. Errors: likewise.
absl::StatusOr<SimulatedDraft> SearchFrom(absl::StatusOr<SimulatedDraft> start, int simulations,
                                          DraftSimulator& simulator, SimulatedDraft draft,
                                          const SimulatedDraft& kept);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_SEARCH_DRAFTS_H_
