#ifndef SIPHON_PLANNER_SEARCH_TIDY_DRAFT_H_
#define SIPHON_PLANNER_SEARCH_TIDY_DRAFT_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// The draft without what does not make it shorter: stage by stage and kind by kind, what has left
// stays, all of a place or half of it, where the step is no longer and everything fits all the
// same. A search takes such decisions on its way, and random ones most of all; they cost links,
// host memory and energy. A draft that does not fit is left as it is.
//
// Deterministic; two simulations a stage, kind and place at most. Errors: as DraftSimulator::Run,
// but for ResourceExhausted.
absl::StatusOr<SimulatedDraft> TidyDraft(DraftSimulator& simulator, SimulatedDraft start);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_TIDY_DRAFT_H_
