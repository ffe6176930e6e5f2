#ifndef SIPHON_PLANNER_SEARCH_WEIGHT_STARTS_H_
#define SIPHON_PLANNER_SEARCH_WEIGHT_STARTS_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// The best of `start` and of drafts that send parameters and gradients away, too: instead of layers
// that it recomputes, of which as few as needed are recomputed again, or, where it does not fit,
// beside all that it does. To the host and to lenders; parameters of as many layers as the steady
// state hides, then of all, then gradients, each as far as a worker must.
//
// Errors: as DraftSimulator::Run, but for ResourceExhausted. About ten simulations a draft.
absl::StatusOr<SimulatedDraft> BestWithWeightsAway(DraftSimulator& simulator, SimulatedDraft start);

// Where nothing else fits: optimizer state with the host, weights with it or with lenders, in
// blocks of layers. Either all layers are computed again, and then as few weights leave as needed,
// or all weights leave, and as few blocks as needed are computed again: layers that are computed
// again together have their weights together, and where each layer's activations are as large as
// its input only several of them together save anything. They stream through so many buffers
// (StagePlan::stream_buffers). Requires: workers reach the host. Errors: as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> FitWeightBlocks(DraftSimulator& simulator,
                                               const DeviceMapping& mapping,
                                               int stream_buffers = kMostStreamBuffers);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_WEIGHT_STARTS_H_
