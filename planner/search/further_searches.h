#ifndef SIPHON_PLANNER_SEARCH_FURTHER_SEARCHES_H_
#define SIPHON_PLANNER_SEARCH_FURTHER_SEARCHES_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Once more with some of the optimizer steps on the host, as searches by single changes do not find
// them; of large problems without a search behind it. As SearchFurther, whose first search it is.
absl::StatusOr<SimulatedDraft> SearchSpreadSteps(DraftSimulator& simulator, SimulatedDraft draft,
                                                 const SimulatedDraft& kept);

// The searches of `auto` for what its first ones leave as it is, one after the other, each from the
// best draft until then: optimizer steps on the host, state at home between steps, tensors within
// layers, early recomputation, shares of the microbatches, state that streams; then from starts of
// their own, and of several workers at once. `kept` is a simulation of a draft that keeps
// everything. Never worse than `draft`. Errors: as DraftSimulator::Run, but for ResourceExhausted.
absl::StatusOr<SimulatedDraft> SearchFurther(DraftSimulator& simulator, SimulatedDraft draft,
                                             const SimulatedDraft& kept);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_FURTHER_SEARCHES_H_
