#ifndef SIPHON_PLANNER_SEARCH_SWAP_DRAFT_H_
#define SIPHON_PLANNER_SEARCH_SWAP_DRAFT_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Where optimizer state that is swapped is while no step runs.
enum class StateBetweenSteps {
  kAway,
  kHome,  // as far as there is room for it (KeepStateHome)
};

// The fastest step of those that swap as little as needed to one kind of place, on top of `draft`:
// weight versions and optimizer state or activations first, the latter from the first layers on,
// which are away longest; with copies back that begin right before they are needed, or one or two
// actions earlier; for workers that only follow their programs, stage by stage with more time
// (GiveSlack). With state at home, that goes first. Errors: as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> SwapToOnePlace(DraftSimulator& simulator, const DraftPlan& draft,
                                              Placement place,
                                              StateBetweenSteps state = StateBetweenSteps::kAway);

// The same, of a draft that it has made, for as few microbatches as needed (FewestMicrobatches).
absl::StatusOr<SimulatedDraft> FewestSwapped(DraftSimulator& simulator,
                                             absl::StatusOr<SimulatedDraft> start, Placement place);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_SWAP_DRAFT_H_
