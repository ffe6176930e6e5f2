#ifndef SIPHON_PLANNER_SEARCH_START_DRAFTS_H_
#define SIPHON_PLANNER_SEARCH_START_DRAFTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/search/swap_draft.h"

namespace siphon {

// The best of some plans that mix places, each as little as needed: activations of the first layers
// to the host, as many as the steady state hides; those behind them to lenders, as far as these
// have room; the last layers computed again; optimizer state to the host before or after that. In
// some of them, workers that have too much already are not the only ones whose tensors go to the
// host: what fits makes room for others.
//
// With state at home only those that send it away before anything else.
//
// `kept` is a simulation of a draft that keeps everything. Errors: as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> BestStart(DraftSimulator& simulator, const SimulatedDraft& kept,
                                         StateBetweenSteps state = StateBetweenSteps::kAway);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_START_DRAFTS_H_
