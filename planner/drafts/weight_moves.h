#ifndef SIPHON_PLANNER_DRAFTS_WEIGHT_MOVES_H_
#define SIPHON_PLANNER_DRAFTS_WEIGHT_MOVES_H_

#include <vector>

#include "planner/drafts/draft_plan.h"
#include "planner/drafts/move_lists.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/model_profile.h"

namespace siphon {

// A layer of one of a worker's stages.
struct WorkerLayer {
  int stage = 0;
  int layer = 0;  // of the stage
  const LayerProfile* profile = nullptr;
};

// The worker's layers whose weights can be away (CanStream), ascending. They point into `problem`.
std::vector<WorkerLayer> StreamableLayers(const PlanningProblem& problem, WorkerId worker);

// [worker]: its streamable layers, each as far apart from those before it and from the ends of its
// stage as can be, so that one's copy has the most work to hide behind.
std::vector<std::vector<WorkerLayer>> SpreadLayers(const PlanningProblem& problem);

// [worker]: that kind of each layer's tensors goes to `to`, in the order of `layers`; without those
// of no bytes. Requires: not activations.
MoveLists MovesOf(const std::vector<std::vector<WorkerLayer>>& layers, GroupKind kind,
                  Placement to);

// Everything kept; what then leaves goes layer by layer, its optimizer step likewise: the next
// layer comes in for it when the one before goes out, so that two are there at once.
DraftPlan StreamingDraft(const PlanningProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_WEIGHT_MOVES_H_
