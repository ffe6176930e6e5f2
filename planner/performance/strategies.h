#ifndef SIPHON_PLANNER_PERFORMANCE_STRATEGIES_H_
#define SIPHON_PLANNER_PERFORMANCE_STRATEGIES_H_

#include "absl/status/statusor.h"
#include "planner/performance/out_of_core.h"

namespace siphon {

// The functions behind the table of strategies. Errors: as in OutOfCoreStrategy.
#define SIPHON_OUT_OF_CORE(name, title, tasks, closed_form)              \
  absl::StatusOr<OutOfCoreTasks> tasks(const OutOfCoreProblem& problem); \
  absl::StatusOr<Nanos> closed_form(const OutOfCoreProblem& problem);
#include "planner/performance/out_of_core_strategies.def"
#undef SIPHON_OUT_OF_CORE

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_STRATEGIES_H_
