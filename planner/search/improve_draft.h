#ifndef SIPHON_PLANNER_SEARCH_IMPROVE_DRAFT_H_
#define SIPHON_PLANNER_SEARCH_IMPROVE_DRAFT_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/search/draft_changes.h"

namespace siphon {

// Changes the draft step by step as long as its score improves, at most until the simulator has run
// `most_simulations` in all. Looks at all workers together, then at one after the other in the
// order of what saving memory costs them (recomputation and exposed waits for copies), and takes
// the first change that helps: layers from one place to another, how long copies have, how many
// layers go together, room on lenders by what these send to the host themselves, two workers'
// devices exchanged, and, where weights may go anywhere, weights away for activations that stay. A
// change that would be faster but takes too much memory is tried with a few
// more layers recomputed.
//
// The result is never worse than `start`. Deterministic. Errors: as DraftSimulator::Run, but for
// ResourceExhausted.
absl::StatusOr<SimulatedDraft> ImproveDraft(DraftSimulator& simulator, SimulatedDraft start,
                                            int most_simulations, WeightSearch weights);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_IMPROVE_DRAFT_H_
