#ifndef SIPHON_PLANNER_SEARCH_ACTIVATION_STREAMS_H_
#define SIPHON_PLANNER_SEARCH_ACTIVATION_STREAMS_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// More groups than this on their way at once are as good as all.
inline constexpr int kMostGroupsOnTheirWay = 12;

// Whether the stage's activations leave under their forwards, or come in under their backwards
// (SwapTiming::groups_out_behind, groups_in_before), as far as any are swapped.
bool StreamsActivations(const StageDraft& stage);
bool StreamsActivations(const DraftPlan& draft);

// The best of drafts in which the activations of all workers, or of all but some of the last ones,
// stream through the host layer by layer, as many groups of them at once as are tried, and are
// computed again only where that does not fit. A worker then needs room for some layers of one
// microbatch beside its weights, where it would need it for all layers of two: with less than that,
// only computing everything again is left to the other searches. The rest, and what other workers
// do, is as in `draft`.
//
// Errors: ResourceExhausted where no such draft can be simulated; as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> BestActivationStreams(DraftSimulator& simulator,
                                                     const SimulatedDraft& draft);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_ACTIVATION_STREAMS_H_
