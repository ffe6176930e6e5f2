#ifndef SIPHON_PLANNER_STRATEGIES_SWAP_AS_NEEDED_H_
#define SIPHON_PLANNER_STRATEGIES_SWAP_AS_NEEDED_H_

#include "absl/status/statusor.h"
#include "planner/strategies/draft_simulator.h"

namespace siphon {

// `start`, which swaps activations of whole layers to `place` (SwapToOnePlace), with as few of
// their microbatches on the way as each worker has no room for; with those that stay at the turn
// from forwards to backwards the last ones or the first ones (SwapTiming::Turn), whichever makes
// the shorter step. The layer that goes last goes for a share, the ones before it whole.
//
// The result is never worse than `start`. Errors: those of `start`; as DraftSimulator::Run, but for
// ResourceExhausted. At most 12 simulations.
absl::StatusOr<SimulatedDraft> SwapAsNeeded(DraftSimulator& simulator,
                                            absl::StatusOr<SimulatedDraft> start, Placement place);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_SWAP_AS_NEEDED_H_
