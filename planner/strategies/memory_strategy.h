#ifndef SIPHON_PLANNER_STRATEGIES_MEMORY_STRATEGY_H_
#define SIPHON_PLANNER_STRATEGIES_MEMORY_STRATEGY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// A way to make a step fit. To add one: a file beside this one, a line in strategies.def.
struct MemoryStrategy {
  absl::string_view name;  // as in memory.strategy of a job
  absl::string_view help;  // one line for --help
  // The best plan of its kind, whatever numbers the devices have (renumber_plan.h). Pure. Errors:
  // ResourceExhausted when no plan of its kind fits: names the worker, what its best plan needs and
  // the capacity; Cancelled when it is no faster than a problem's has_step, where the strategy
  // saves time by that; InvalidArgument as CheckPlanningProblem.
  absl::StatusOr<PlannedStep> (*plan)(const PlanningProblem& problem);
};

const std::vector<MemoryStrategy>& MemoryStrategies();

// Errors: NotFound with the known names.
absl::StatusOr<MemoryStrategy> FindMemoryStrategy(absl::string_view name);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MEMORY_STRATEGY_H_
