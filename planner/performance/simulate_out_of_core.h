#ifndef SIPHON_PLANNER_PERFORMANCE_SIMULATE_OUT_OF_CORE_H_
#define SIPHON_PLANNER_PERFORMANCE_SIMULATE_OUT_OF_CORE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/performance/out_of_core.h"
#include "planner/units.h"

namespace siphon {

// A task as it ran.
struct OutOfCoreInterval {
  OutOfCoreKind kind = OutOfCoreKind::kForward;
  int layer = 0;
  Nanos begin;
  Nanos end;
  friend bool operator==(const OutOfCoreInterval&, const OutOfCoreInterval&) = default;
};

struct OutOfCoreStep {
  Nanos step_time;
  Nanos forward;           // until the last forward ended
  Nanos stall;             // step time less that of all forwards and backwards
  double utilization = 0;  // of the compute lane; equation 9 over the whole step
  Bytes moved_out;
  Bytes moved_in;
  int swapped_layers = 0;
  Bytes peak;  // near memory for saved tensors
  // Since the backward began: when it first waited for a copy (T_catch of equations 10 and 11).
  std::optional<Nanos> catch_up;
  std::vector<OutOfCoreInterval> intervals;  // in the order of the tasks
  friend bool operator==(const OutOfCoreStep&, const OutOfCoreStep&) = default;
};

// Runs the strategy's tasks on a compute lane and two copy lanes. Linear in the layers (memory:
// n log n). Errors: those of the strategy.
absl::StatusOr<OutOfCoreStep> SimulateOutOfCore(const OutOfCoreStrategy& strategy,
                                                const OutOfCoreProblem& problem);

// "F1 [0, 10) compute" lines, in order of begin, then of lane: F and B, "out" and "in" of copies,
// "evict" and "fault" of pages.
std::string ToString(const OutOfCoreStep& step);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_SIMULATE_OUT_OF_CORE_H_
