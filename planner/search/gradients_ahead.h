#ifndef SIPHON_PLANNER_SEARCH_GRADIENTS_AHEAD_H_
#define SIPHON_PLANNER_SEARCH_GRADIENTS_AHEAD_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Whether the stage has gradients in layer by layer.
bool StreamsGradients(const StageDraft& stage);
bool StreamsGradients(const DraftPlan& draft);

// More groups than this are no gain: what comes ahead takes their memory while nobody uses it.
inline constexpr int kMostGradientsAhead = 3;

// `best`, with gradients that stream on their way in before their backward begins
// (SwapTiming::gradients_ahead), so that links have something to do while a worker computes a
// forward: as many groups as is best for all stages alike, then for each worker by itself. Never
// worse than `best`. Errors: as DraftSimulator::Run, but for ResourceExhausted.
absl::StatusOr<SimulatedDraft> BestWithGradientsAhead(DraftSimulator& simulator,
                                                      SimulatedDraft best);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_GRADIENTS_AHEAD_H_
