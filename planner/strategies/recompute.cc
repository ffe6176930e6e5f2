#include "planner/search/recompute_draft.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {

absl::StatusOr<PlannedStep> PlanRecompute(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftRecompute, "recompute");
}

}  // namespace siphon
