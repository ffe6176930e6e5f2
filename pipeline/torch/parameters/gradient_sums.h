#ifndef SIPHON_PIPELINE_TORCH_GRADIENT_SUMS_H_
#define SIPHON_PIPELINE_TORCH_GRADIENT_SUMS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/parameters/held_parameter.h"

namespace siphon {

// A parameter's gradients of one step: summed over microbatches use by use, then over uses in layer
// order, at most once, so that the sum has the same bits wherever the uses are.
// What returns no status throws as LibTorch does.

// One more microbatch's gradient: the first is copied, later ones are added.
void AddMicrobatch(const at::Tensor& gradient, HeldParameter::Use& use);

// The sum over all uses of a parameter that several stages use, into memory of its own; frees what
// came from other stages.
// Errors: FailedPrecondition if it was made already, or a use's gradient is not there.
absl::Status AddSharedUses(HeldParameter& held);

// The gradient that norm and update see: the sum over uses, made at most once a step, in place of
// the first use's gradient.
// Errors: FailedPrecondition if a use's gradient is not there, or other stages' are still to be
// added.
absl::StatusOr<at::Tensor> TotalGradient(HeldParameter& held);

// No gradients yet.
void ForgetGradients(HeldParameter& held);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_GRADIENT_SUMS_H_
