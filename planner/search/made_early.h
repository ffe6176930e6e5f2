#ifndef SIPHON_PLANNER_SEARCH_MADE_EARLY_H_
#define SIPHON_PLANNER_SEARCH_MADE_EARLY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Whether any stage computes layers again before their backward.
bool MakesEarly(const DraftPlan& draft);

// Drafts that differ in how many of the layers that `stages` compute again are so before their
// backward, or how long before it.
std::vector<DraftPlan> ChangesOfMadeEarly(const DraftPlan& draft,
                                          const std::vector<StageId>& stages);

// From how many starts: large problems have time for a few simulations only.
enum class EarlyStarts { kMany, kFew };

// The best of `best` and, of many, of a start that only computes again, each with layers made early
// in all stages at once. Errors: ResourceExhausted where none came to a simulation; else as
// DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> BestMadeEarly(DraftSimulator& simulator, const SimulatedDraft& best,
                                             EarlyStarts which);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_MADE_EARLY_H_
