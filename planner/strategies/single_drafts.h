#ifndef SIPHON_PLANNER_STRATEGIES_SINGLE_DRAFTS_H_
#define SIPHON_PLANNER_STRATEGIES_SINGLE_DRAFTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/strategies/plan_on_map.h"

namespace siphon {

// A strategy with one kind of place.
struct SingleStrategy {
  absl::string_view name;
  MakeDraft draft;
  // What the strategy's plan is made of, where that is not `draft` but takes twice as long.
  MakeDraft whole = nullptr;
};

// What it makes of a problem before it looks for a map.
struct SingleDraft {
  const SingleStrategy* strategy = nullptr;
  SimulatedDraft draft;
};

// Of all that can be tried on the problem's servers; those for which host or drives have too little
// room are left out. `kept` is a simulation of a draft that keeps everything; where that fits, it
// is the only one. Errors: as DraftSimulator::Run, but for ResourceExhausted.
absl::StatusOr<std::vector<SingleDraft>> SingleDrafts(DraftSimulator& simulator,
                                                      const SimulatedDraft& kept);

// The one with the best score; none where there are none.
const SimulatedDraft* BestOf(const std::vector<SingleDraft>& singles);

// The plans of all strategies whose plan is not their draft on the best map: they are tried whole.
// One that is no faster than `best` (null: there is none) may be an error instead.
std::vector<absl::StatusOr<PlannedStep>> PlansThatAreNoDrafts(PlanningProblem problem,
                                                              const SimulatedDraft* best);

// Puts `other` into the place of `best` where that is none or slower, and says whether it did; one
// that is none is not.
bool TakeIfFaster(absl::StatusOr<PlannedStep> other, absl::StatusOr<PlannedStep>& best);

// `best`, or the fastest of the plans that the strategies of such drafts give out, where that is
// faster, with its map proven where MapsToProve is enough. Not asked are those whose drafts did not
// fit, if they try no more than that; and of large problems those whose drafts are no faster on any
// map. `kept`: as above. Errors: `best`'s, where none of them fits; as LeastStepOfMaps.
absl::StatusOr<PlannedStep> BestOnOwnMaps(const PlanningProblem& problem,
                                          const SimulatedDraft& kept,
                                          const std::vector<SingleDraft>& singles,
                                          absl::StatusOr<PlannedStep> best);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_SINGLE_DRAFTS_H_
