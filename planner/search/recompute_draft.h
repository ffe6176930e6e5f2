#ifndef SIPHON_PLANNER_SEARCH_RECOMPUTE_DRAFT_H_
#define SIPHON_PLANNER_SEARCH_RECOMPUTE_DRAFT_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// As few layers as needed are computed again, and of the last of them for as few microbatches.
// The last layers first (MPress, III.D): their stages' backward comes first, and what it then takes
// longer lengthens the live intervals of the layers before.
// Errors: as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> DraftRecompute(DraftSimulator& simulator);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_RECOMPUTE_DRAFT_H_
