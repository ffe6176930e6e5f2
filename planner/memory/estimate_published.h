#ifndef SIPHON_PLANNER_MEMORY_ESTIMATE_PUBLISHED_H_
#define SIPHON_PLANNER_MEMORY_ESTIMATE_PUBLISHED_H_

#include "absl/status/statusor.h"
#include "planner/memory/memory_estimate.h"

namespace siphon {

// Memory as papers count it: parameters, gradients, optimizer state and older weight versions
// (BytesOfParameter), and the activations of the published formula for every microbatch between
// its F and its B. No boundaries, workspace, buffers or slack; a tied parameter counts once, where
// it is used first. Layers that the formula does not know count what they say they save. With the
// readings of MPress (MpressConfigurations) it gives Table II. Errors: InvalidArgument when sums
// would not fit into 63 bits.
absl::StatusOr<MemoryEstimate> EstimatePublished(const MemoryInputs& inputs);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_ESTIMATE_PUBLISHED_H_
