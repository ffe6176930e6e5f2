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
#include "pipeline/torch/layers.h"
#include "pipeline/torch/parameters/held_parameter.h"
#include "pipeline/torch/parameters/optimizers.h"
#include "pipeline/torch/parameters/step_norms.h"
#include "planner/model_spec.h"
#include "planner/stage_partition.h"

namespace siphon {

// The parameters of one stage with their gradients and moments. All uses of a parameter within the
// stage share its memory, and each use has a gradient accumulator of its own.
//
// Thread-safety: one thread. What returns no status throws as LibTorch does.
class StageParameters final : public StateMemory {
 public:
  // Parameters at their initial values, moments and accumulators allocated; but for what is in
  // `away`, which has no memory yet. `threads` draw initial values, here and later.
  StageParameters(const Model& model, const StagePartition& partition, StageId stage, uint64_t seed,
                  const OptimizerTraits* optimizer, OptimizerOptions options,
                  const std::vector<StateGroup>& away, at::Device device = at::kCPU,
                  int threads = 1);

  // In the order of LayerSpec::parameters. `layer` counts in the whole model.
  const std::vector<at::Tensor>& OfLayer(int layer) const;

  // A step of so many microbatches begins: no gradients yet.
  void BeginStep(int microbatches);
  // Adds one microbatch's gradients of a layer: the first is copied, later ones are added to it.
  void Accumulate(int layer, const std::vector<at::Tensor>& gradients);

  // As StageCompute says.
  std::vector<SharedGradient> SharedGradients();
  absl::Status AddSharedGradients();
  absl::StatusOr<std::vector<float>> GradientNorms();
  absl::Status Update(const UpdateSettings& settings, StageRange layers);
  std::vector<StepTensor> StepTensors();
  absl::Status KeepStateOnHost(const TensorSpans& memory);
  // Whether these bytes of a tensor are that.
  bool IsStateOnHost(absl::Span<const std::byte> bytes) const;
  absl::Status UpdateOnHost(const UpdateSettings& settings, StageRange layers,
                            const std::vector<HostStepMemory>& memory);
  std::vector<StateTensor> State();

  // Errors: FailedPrecondition naming a parameter of the layer that has no memory, or whose
  // gradient has none.
  absl::Status CheckParameters(int layer) const;
  absl::Status CheckGradients(int layer) const;

  absl::StatusOr<TensorSpans> Tensors(const StateGroup& group) override;
  absl::Status Free(const StateGroup& group) override;
  absl::StatusOr<TensorSpans> Refill(const StateGroup& group) override;
  absl::Status Initialise(const StateGroup& group) override;

 private:
  HeldParameter::Use& UseAt(int layer, int index);
  // `value` is updated, by way of the master where there is one; all of it there, or on the host.
  enum class Where { kThere, kOnHost };
  void UpdateOne(const UpdateSettings& settings, const at::Tensor& value,
                 const at::Tensor& gradient, Where where, HeldParameter& held);

  const at::Device device_;
  const OptimizerTraits* optimizer_;
  OptimizerOptions options_;
  int first_layer_ = 0;
  std::vector<HeldParameter> held_;                    // in canonical order
  std::vector<std::vector<at::Tensor>> of_layer_;      // [layer - first_layer_][index]
  std::vector<std::vector<std::pair<int, int>>> use_;  // same places: indices into held_, uses
  StepNorms norms_;                                    // [index into held_]
  at::Tensor update_count_;
  at::Tensor update_count_on_host_;  // the same tensor on the CPU
  PowersOnDevice powers_;            // for updates on the host that have the bits of CUDA's
  uint64_t seed_;
  int threads_;           // that draw initial values
  int microbatches_ = 0;  // of the step under way
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_STAGE_PARAMETERS_H_
