#ifndef SIPHON_PLANNER_MEMORY_ESTIMATE_RUNTIME_H_
#define SIPHON_PLANNER_MEMORY_ESTIMATE_RUNTIME_H_

#include "absl/status/statusor.h"
#include "planner/memory/memory_estimate.h"

namespace siphon {

// What our workers hold on the CPU, in the books that memory.capacity limits: each worker's program
// is walked action by action, and the moment with most bytes counts. Every stage holds the
// parameters that it uses (tied ones on each stage), one accumulator a use, and the optimizer's
// moments; a tensor that was sent is held until the next compute action is done. The allocator's
// blocks are up to an eighth larger than what is booked, which no capacity counts.
//
// Activations, best source first: a measured profile, the layers' saved tensors, the published
// formula; layers without any count nothing (UnknownLayers). Errors: as EstimatePublished.
absl::StatusOr<MemoryEstimate> EstimateRuntime(const MemoryInputs& inputs);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_ESTIMATE_RUNTIME_H_
