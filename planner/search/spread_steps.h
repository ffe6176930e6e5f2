#ifndef SIPHON_PLANNER_SEARCH_SPREAD_STEPS_H_
#define SIPHON_PLANNER_SEARCH_SPREAD_STEPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Drafts that differ from `draft` in who steps on the host: below each PCIe switch equally many
// workers, those of the last stages or of the first ones; the others have all their optimizer state
// swapped to the host, unless it is elsewhere in `draft`. The host then works while what is swapped
// is on its way, below all switches at once: where others wait as long, one worker alone gains
// nothing.
std::vector<DraftPlan> SpreadSteps(const PlanningProblem& problem, const DraftPlan& draft);

// The best of them, not of `best` itself. Errors, of this and the next one: ResourceExhausted where
// none came to a simulation; else as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> BestSpreadSteps(DraftSimulator& simulator,
                                               const SimulatedDraft& best);

// The best of drafts in which each worker keeps as much of its optimizer state as it has room for
// and leaves the rest, with its step, to the host: as `best` is otherwise, or with layers computed
// again before that or behind it.
absl::StatusOr<SimulatedDraft> BestOfTheRestOnHost(DraftSimulator& simulator,
                                                   const SimulatedDraft& best);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_SPREAD_STEPS_H_
