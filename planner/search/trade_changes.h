#ifndef SIPHON_PLANNER_SEARCH_TRADE_CHANGES_H_
#define SIPHON_PLANNER_SEARCH_TRADE_CHANGES_H_

#include <vector>

#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Drafts in which each of `stages` sends parameters, gradients or optimizer state of one more, half
// or all of the layers that it keeps to the host or to lenders, and in return keeps activations
// that were recomputed, at the host or on drives: as many layers of them as the room is for (a
// stage that gains room for none does not change). What comes in layer by layer needs two layers'
// room for parameters, three for gradients.
std::vector<DraftPlan> TradesOf(const DraftSimulator& simulator, const DraftPlan& draft,
                                const std::vector<StageId>& stages);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_TRADE_CHANGES_H_
