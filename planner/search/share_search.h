#ifndef SIPHON_PLANNER_SEARCH_SHARE_SEARCH_H_
#define SIPHON_PLANNER_SEARCH_SHARE_SEARCH_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Changes of how many microbatches the activations of layers go where they are placed, as long as
// that helps: of all stages at once, then of one after the other. Layers of which fewer go, by
// themselves or with one that is kept taking over, and swapped ones that come back into what that
// frees. In the end, of which microbatches stay at the turn from forwards to backwards
// (SwapTiming::Turn). At most so many simulations.
//
// The result is never worse than `start`. Deterministic. Errors: as DraftSimulator::Run, but for
// ResourceExhausted.
absl::StatusOr<SimulatedDraft> SearchShares(DraftSimulator& simulator, SimulatedDraft start,
                                            int most_simulations);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_SHARE_SEARCH_H_
