#ifndef SIPHON_PIPELINE_STATE_MEMORY_H_
#define SIPHON_PIPELINE_STATE_MEMORY_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/memory_plan.h"
#include "planner/stage_partition.h"

namespace siphon {

// Memory of tensors: contiguous, 64-byte aligned. Of a boundary, one span for each tensor in the
// order of LayerSpec::outputs.
using TensorSpans = std::vector<absl::Span<std::byte>>;

// The parameters, the gradients or the optimizer state of consecutive layers of one stage. Of
// parameters that several layers use, parameters and gradients are in no group, and the optimizer
// state is in that of the first such layer of the stage.
struct StateGroup {
  GroupKind kind = GroupKind::kParameters;  // or kGradients, kOptimizerState
  StageRange layers;                        // of the model
  friend bool operator==(const StateGroup&, const StateGroup&) = default;
};

// The memory of a stage's training state, which can be freed and taken again between its uses: all
// views on it stay valid. Using a tensor whose memory is freed is FailedPrecondition, naming it.
//
// Thread-safety: one thread, the worker's. Errors: ResourceExhausted when the worker's memory is
// full.
class StateMemory {
 public:
  virtual ~StateMemory() = default;
  // Of each tensor of the group once; empty for one that is freed.
  virtual absl::StatusOr<TensorSpans> Tensors(const StateGroup& group) = 0;
  virtual absl::Status Free(const StateGroup& group) = 0;
  // Takes the memory again, its contents unknown. As Tensors.
  virtual absl::StatusOr<TensorSpans> Refill(const StateGroup& group) = 0;
  // Writes what training starts with. Requires: the memory is there.
  virtual absl::Status Initialise(const StateGroup& group) = 0;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STATE_MEMORY_H_
