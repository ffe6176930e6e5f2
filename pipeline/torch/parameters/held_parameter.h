#ifndef SIPHON_PIPELINE_TORCH_HELD_PARAMETER_H_
#define SIPHON_PIPELINE_TORCH_HELD_PARAMETER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pipeline/state_memory.h"
#include "pipeline/torch/aten.h"
#include "planner/model_spec.h"
#include "planner/stage_partition.h"
#include "planner/tensor_spec.h"

namespace siphon {

// A parameter as one stage holds it, with its gradients and moments.
struct HeldParameter {
  struct Use {
    ParameterUse place;
    bool here = true;      // false: in another stage
    at::Tensor gradient;   // summed over microbatches; of another stage, memory to receive it
    int microbatches = 0;  // that are in the sum
  };

  std::string name;
  TensorSpec spec;                       // as layers compute with it
  TensorSpec wide;                       // the same in float32: gradients, the master, moments
  const ParameterSpec* first = nullptr;  // of its first use, which says how it starts
  int layer = 0;                         // of its first use in this stage
  bool owned = true;                     // its first use is here
  bool shared = false;                   // another stage uses it too
  std::vector<Use> uses;                 // in layer order, other stages' included
  at::Tensor value;
  at::Tensor master;  // where `value` has 16 bits: what is updated, and `value` is rounded from
  std::vector<at::Tensor> moments;

  // Of the step under way:
  at::Tensor total;  // the sum over uses, once made
  bool stepped = false;

  bool HasOneUse() const { return uses.size() == 1; }
  // The optimizer's tensors: the master, where there is one, and the moments.
  std::vector<at::Tensor> OptimizerState() const;
  // They are in this memory of the host from now on, each on a boundary of kTensorAlignment.
  // Requires: they are freed.
  void KeepStateOnHost(absl::Span<std::byte> memory);
  // Frees what of it is on the host though the value is a device's: it is the device's again.
  void TakeStateFromHost();
  // Whether it is on the host, the value's device or another one.
  bool HasStateOnHost() const;
};

// With memory of `device` for all of it, unset; without value where no use is in `stage`.
// `type`: what the value is held in; other than float32, it has a master.
HeldParameter MakeHeldParameter(const ModelSpec& model, const Parameter& parameter,
                                const StageRange& stage, int moments, DType type,
                                at::Device device = at::kCPU);

// The parameter's tensors that are in the group.
std::vector<at::Tensor> TensorsIn(const StateGroup& group, const HeldParameter& parameter);

// Errors: FailedPrecondition that says which tensor of which parameter is away, if it has no
// memory.
absl::Status CheckMemory(const at::Tensor& tensor, absl::string_view what,
                         absl::string_view parameter);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_HELD_PARAMETER_H_
