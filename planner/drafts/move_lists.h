#ifndef SIPHON_PLANNER_DRAFTS_MOVE_LISTS_H_
#define SIPHON_PLANNER_DRAFTS_MOVE_LISTS_H_

#include <vector>

#include "planner/drafts/draft_plan.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// [worker]: what it does to save memory, in this order, as far as it must.
using MoveLists = std::vector<std::vector<DraftMove>>;

// First layers are those nearest the model's input. Their activations are made first and used last.
enum class LayerOrder { kFirstLayersFirst, kLastLayersFirst };

// Each layer's activations, without those of no bytes.
MoveLists ActivationMoves(const PlanningProblem& problem, Placement to, LayerOrder order);

// Each layer's optimizer state, the last layers first. None of stages that step in the middle
// (UPDATE) or never.
MoveLists OptimizerStateMoves(const PlanningProblem& problem, Placement to);

// Each layer's stashed weight versions, the first layers first, which a backward comes to last.
// None of stages that stash none.
MoveLists WeightVersionMoves(const PlanningProblem& problem, Placement to);

// Each stage's optimizer step to the host; none of stages that step in the middle or never.
MoveLists UpdateMoves(const PlanningProblem& problem);

// Whether any worker has a move.
bool AnyMove(const MoveLists& moves);

// First those of `first`, then those of `then`. Requires: of the same workers.
MoveLists Chain(MoveLists first, const MoveLists& then);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_MOVE_LISTS_H_
