#ifndef SIPHON_PIPELINE_TORCH_STAGE_PARAMETERS_H_
#define SIPHON_PIPELINE_TORCH_STAGE_PARAMETERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/optimizers.h"
#include "planner/model_spec.h"
#include "planner/stage_partition.h"

namespace siphon {

// The parameters of one stage with their gradients and moments. All uses of a parameter within the
// stage share its memory, and each use has a gradient accumulator of its own.
//
// Thread-safety: one thread. What returns no status throws as LibTorch does.
class StageParameters {
 public:
  // Parameters at their initial values, moments and accumulators allocated.
  StageParameters(const ModelSpec& model, const StagePartition& partition, StageId stage,
                  uint64_t seed, const OptimizerTraits* optimizer, OptimizerOptions options);

  // In the order of LayerSpec::parameters. `layer` counts in the whole model.
  const std::vector<at::Tensor>& OfLayer(int layer) const;

  // Forgets the gradients.
  void ClearGradients();
  // Adds one microbatch's gradients of a layer: the first is copied, later ones are added to it.
  void Accumulate(int layer, const std::vector<at::Tensor>& gradients);

  // As StageCompute says.
  std::vector<SharedGradient> SharedGradients();
  absl::Status AddSharedGradients();
  absl::StatusOr<std::vector<float>> GradientNorms();
  absl::Status Update(const UpdateSettings& settings);
  std::vector<StateTensor> State();

 private:
  struct Use {
    ParameterUse place;
    bool here = true;     // false: in another stage
    at::Tensor gradient;  // summed over microbatches; of another stage, memory to receive it
    bool has_gradient = false;
  };
  struct Held {
    std::string name;
    TensorSpec spec;
    bool owned = true;      // the first use is here
    bool shared = false;    // another stage uses it too
    std::vector<Use> uses;  // in layer order, other stages' included
    at::Tensor value;
    std::vector<at::Tensor> moments;
    at::Tensor total;  // the sum over uses, once made
  };

  Held MakeHeld(const ModelSpec& model, const Parameter& parameter, const StageRange& range,
                uint64_t seed);
  Use& UseAt(int layer, int index);
  // The gradient that norm and update see: the sum over uses, made at most once a step.
  absl::StatusOr<at::Tensor> Total(Held& held);

  const OptimizerTraits* optimizer_;
  OptimizerOptions options_;
  int first_layer_ = 0;
  std::vector<Held> held_;                             // in canonical order
  std::vector<std::vector<at::Tensor>> of_layer_;      // [layer - first_layer_][index]
  std::vector<std::vector<std::pair<int, int>>> use_;  // same places: indices into held_, uses
  at::Tensor update_count_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_STAGE_PARAMETERS_H_
