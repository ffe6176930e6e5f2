#ifndef SIPHON_PLANNER_SEARCH_WEIGHT_STREAMS_H_
#define SIPHON_PLANNER_SEARCH_WEIGHT_STREAMS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

bool AnySwapped(const std::vector<Placement>& layers);
// Whether parameters or gradients are away between their uses.
bool SendsWeights(const StageDraft& stage);
bool SendsWeights(const DraftPlan& draft);
// Whether the stage has parameters or gradients in layer by layer; gradients.
bool StreamsWeights(const StageDraft& stage);
bool StreamsGradients(const StageDraft& stage);
bool StreamsWeights(const DraftPlan& draft);
// Whether any stage's weights stream through fewer buffers than there can be, or ahead.
bool TunesStreams(const DraftPlan& draft);

// More groups than this are no gain: what comes ahead takes their memory while nobody uses it.
inline constexpr int kMostGradientsAhead = 3;

// `best`, with as many buffers for weights that stream (StagePlan::stream_buffers) as is best, and
// with gradients on their way in before their backward begins (SwapTiming::gradients_ahead), so
// that links have something to do while a worker computes a forward: for all stages alike, then for
// each worker by itself. Fewer buffers hide less of the copies, and leave room. Never worse than
// `best`. Errors: as DraftSimulator::Run, but for ResourceExhausted.
absl::StatusOr<SimulatedDraft> BestWeightStreams(DraftSimulator& simulator, SimulatedDraft best);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_WEIGHT_STREAMS_H_
