#ifndef SIPHON_PIPELINE_TORCH_OPTIMIZERS_H_
#define SIPHON_PIPELINE_TORCH_OPTIMIZERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/parameters/updates_as_on_cuda.h"
#include "pipeline/torch/torch_stage.h"

namespace siphon {

// One update of one parameter.
struct ParameterUpdate {
  at::Tensor parameter;
  at::Tensor gradient;  // clipped already
  std::vector<at::Tensor> moments;
  at::Tensor update_count;  // float32 scalar: this update's number, from 1
  double learning_rate = 0;
  double weight_decay = 0;  // 0 for what is not decayed
};

// An optimizer: how many moments it keeps for each parameter, and its update, by LibTorch's fused
// kernel on one parameter at a time (on lists of several, the bits may depend on the list); and the
// same on the host, with tensors there, as that kernel of CUDA's does it. A new one is one file and
// one line in optimizers.def.
struct OptimizerTraits {
  int (*moments)(const OptimizerOptions& options);  // 0, 1 or 2; they start as zeros
  void (*update)(const OptimizerOptions& options, const ParameterUpdate& update);
  void (*update_as_on_cuda)(const OptimizerOptions& options, const ParameterUpdate& update,
                            PowersOnDevice& powers);
};

#define SIPHON_OPTIMIZER(name, traits) extern const OptimizerTraits traits;
#include "pipeline/torch/parameters/optimizers.def"
#undef SIPHON_OPTIMIZER

// Errors: NotFound for an unknown name (known ones listed).
absl::StatusOr<const OptimizerTraits*> FindOptimizer(absl::string_view name);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_OPTIMIZERS_H_
