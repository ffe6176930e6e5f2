#ifndef SIPHON_PLANNER_PERFORMANCE_COMPARE_OUT_OF_CORE_H_
#define SIPHON_PLANNER_PERFORMANCE_COMPARE_OUT_OF_CORE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/model_profile.h"
#include "planner/performance/out_of_core.h"
#include "planner/performance/simulate_out_of_core.h"
#include "planner/units.h"

namespace siphon {

struct OutOfCoreResult {
  std::string name;
  std::string title;
  std::optional<OutOfCoreStep> step;  // nothing: it does not fit
  std::string why_not;                // then this is the reason
};

struct OutOfCoreComparison {
  Bytes resident;                        // weights, gradients, optimizer state, workspace
  Bytes saved;                           // by one batch
  Bytes capacity;                        // for it
  Nanos compute;                         // one step with all in memory
  std::vector<OutOfCoreResult> results;  // in the order of the table of strategies
  // Capacity-based swapping with twice the link, and with twice the near memory; nothing where it
  // does not fit.
  std::optional<Nanos> twice_the_link;
  std::optional<Nanos> twice_the_memory;
  // What follows, in sentences. The paper's conclusion, to buy link throughput rather than near
  // capacity, stands there where it holds, and the opposite where that does.
  std::vector<std::string> conclusions;
};

// Runs every strategy on one batch. Errors: those of OutOfCoreProblemOf.
absl::StatusOr<OutOfCoreComparison> CompareOutOfCore(const ModelProfile& profile,
                                                     const FarMemoryPath& path, Bytes near_memory);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_COMPARE_OUT_OF_CORE_H_
