#ifndef SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_PROBLEM_H_
#define SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_PROBLEM_H_

#include "absl/status/statusor.h"
#include "planner/model_profile.h"
#include "planner/performance/out_of_core.h"

namespace siphon {

// What always stays in near memory: parameters, gradients, optimizer state, and the largest
// workspace of a layer.
Bytes ResidentBytes(const ModelProfile& profile);

// The out-of-core problem of one batch (the profile's microbatch): the whole backward of a layer is
// one task, and `near_memory` less what always stays is the capacity for saved tensors.
// Errors: ResourceExhausted if nothing is left, with the numbers; InvalidArgument for a path so
// slow, or a memory so large, that it cannot be counted.
absl::StatusOr<OutOfCoreProblem> OutOfCoreProblemOf(const ModelProfile& profile,
                                                    const FarMemoryPath& path, Bytes near_memory);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_PROBLEM_H_
