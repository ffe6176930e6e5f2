#ifndef SIPHON_PLANNER_STRATEGIES_RENUMBER_PLAN_H_
#define SIPHON_PLANNER_STRATEGIES_RENUMBER_PLAN_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/drafts/planning_problem.h"
#include "planner/ids.h"

namespace siphon {

// Searches try devices by their numbers and end where they may try no more, so that of two
// numberings of one server one would get the better plan. Every strategy therefore plans for the
// canonical order (planner/canonical_devices.h) and its plan is given the user's numbers: these
// change the map and the lenders, but neither score nor step time.

// The problem with device order[k] of the user called k.
PlanningProblem RenumberedProblem(const PlanningProblem& problem, absl::Span<const DeviceId> order);

// What `plan` makes of the problem in canonical order, with the user's numbers, in messages too.
// Errors: as `plan`.
absl::StatusOr<PlannedStep> PlanInCanonicalOrder(
    const PlanningProblem& problem,
    absl::FunctionRef<absl::StatusOr<PlannedStep>(const PlanningProblem&)> plan);

// A strategy's function that does so, for the table of strategies.
template <absl::StatusOr<PlannedStep> (*kPlan)(const PlanningProblem&)>
absl::StatusOr<PlannedStep> InCanonicalOrder(const PlanningProblem& problem) {
  return PlanInCanonicalOrder(problem, kPlan);
}

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_RENUMBER_PLAN_H_
