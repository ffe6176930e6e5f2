#ifndef SIPHON_PLANNER_SEARCH_DRAFT_CHANGES_H_
#define SIPHON_PLANNER_SEARCH_DRAFT_CHANGES_H_

#include <vector>

#include "planner/drafts/draft_plan.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// Where tensors of the problem can go at all.
std::vector<Placement> PossiblePlacements(const PlanningProblem& problem,
                                          const DeviceMapping& mapping);

// Whether a search sends parameters and gradients away that its draft keeps. It rarely pays where
// others than them fill the memory, and there are many ways to do it.
enum class WeightSearch { kOnlyBack, kAnywhere };

// Drafts that differ from `draft` in one decision for all of `stages` at once, those first that
// promise most: how long copies have, layers from one place to another (all of a place, half of
// them, one), how many layers go together, who computes the optimizer step. `draft` itself is not
// among them.
std::vector<DraftPlan> ChangesOf(const PlanningProblem& problem, const DraftPlan& draft,
                                 const std::vector<StageId>& stages, WeightSearch weights);

// Drafts in which another worker sends more to the host, and so has room to lend to `worker`, whose
// tensors that are recomputed or on the host go to lenders instead.
std::vector<DraftPlan> ChangesWithRoom(const PlanningProblem& problem, const DraftPlan& draft,
                                       WorkerId worker);

// Drafts with two workers' devices exchanged; none where the problem has a mapping.
std::vector<DraftPlan> ExchangesOf(const PlanningProblem& problem, const DraftPlan& draft);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_DRAFT_CHANGES_H_
