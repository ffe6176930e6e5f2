#ifndef SIPHON_PIPELINE_TORCH_TORCH_STAGE_H_
#define SIPHON_PIPELINE_TORCH_TORCH_STAGE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/torch/compute_device.h"
#include "planner/stage_partition.h"

namespace siphon {

struct Model;

struct OptimizerOptions {
  std::string name = "adamw";  // a key of optimizers.def: adamw, adam, sgd
  double weight_decay = 0.0;   // on matrices only
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double momentum = 0.0;  // sgd
};

// One stage of `model` in LibTorch on a device, in its precision. Parameters start keyed by (seed,
// name); the groups of `away` are freed (StateMemory). Boundaries and state are the device's
// memory, the step's data is the host's. `model` must outlive it. So many `threads` draw initial
// values; the bits are the same. Errors: NotFound for an unknown
// optimizer (known ones listed), ResourceExhausted when memory is full.
absl::StatusOr<std::unique_ptr<StageCompute>> MakeTorchStage(
    const Model& model, const StagePartition& partition, StageId stage, uint64_t seed,
    const OptimizerOptions& optimizer, const std::vector<StateGroup>& away = {},
    const ComputeDevice& device = {}, int threads = 1);

// Sets LibTorch's threads for operators called from this thread. Call once in each worker thread,
// before any tensor.
void SetTorchThreads(int threads);
std::vector<std::string> KnownOptimizers();

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_TORCH_STAGE_H_
