#ifndef SIPHON_PLANNER_DRAFTS_FEWEST_MICROBATCHES_H_
#define SIPHON_PLANNER_DRAFTS_FEWEST_MICROBATCHES_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/move_lists.h"

namespace siphon {

// `start`, in which activations of whole layers go where `moves` have them (ActivationMoves), the
// first ones of each worker's list, with as few of their microbatches as the worker has no room
// for: the layer that goes last goes for a share, those before it whole. Where they are swapped,
// those that stay at the turn from forwards to backwards are the last ones or the first ones
// (SwapTiming::Turn), whichever makes the shorter step.
//
// The result is never worse than `start`. Errors: those of `start`; as DraftSimulator::Run, but for
// ResourceExhausted. At most 12 simulations.
absl::StatusOr<SimulatedDraft> FewestMicrobatches(DraftSimulator& simulator,
                                                  absl::StatusOr<SimulatedDraft> start,
                                                  const MoveLists& moves);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_FEWEST_MICROBATCHES_H_
