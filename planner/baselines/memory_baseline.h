#ifndef SIPHON_PLANNER_BASELINES_MEMORY_BASELINE_H_
#define SIPHON_PLANNER_BASELINES_MEMORY_BASELINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/baselines/baseline_problem.h"

namespace siphon {

// A system that our plans are compared with. To add one: a function, a line in baselines.def.
struct MemoryBaseline {
  absl::string_view name;
  absl::string_view help;  // one line
  // Errors: ResourceExhausted when it does not fit, with the numbers; as CheckBaselineProblem and
  // RatesOf.
  absl::StatusOr<BaselineStep> (*step)(const BaselineProblem& problem);
};
const std::vector<MemoryBaseline>& MemoryBaselines();

}  // namespace siphon

#endif  // SIPHON_PLANNER_BASELINES_MEMORY_BASELINE_H_
