#ifndef SIPHON_PIPELINE_TORCH_KEYED_RANDOM_H_
#define SIPHON_PIPELINE_TORCH_KEYED_RANDOM_H_

#include <cstdint>

#include "pipeline/torch/aten.h"
#include "planner/model_spec.h"

namespace siphon {

// Random tensors that depend on their key alone: not on the process, the thread or what was drawn
// before. They throw as LibTorch does; callers stand inside CallTorch.

// A mask whose elements are 0 with `probability` and 1 / (1 - probability) otherwise, as far as
// `type` can tell (float32, bf16 or fp16), of draw number `draw` in `layer`. The type does not
// change which elements are 0; the kind of device does, as each has generators of its own.
// Requires: 0 < probability < 1.
at::Tensor KeyedDropoutMask(uint64_t seed, int64_t step, int microbatch, int layer, int draw,
                            at::IntArrayRef shape, double probability,
                            at::ScalarType type = at::kFloat, at::Device device = at::kCPU);

// Writes the initial value of a parameter into `tensor` (on the CPU, float32, contiguous, of the
// parameter's shape), keyed by (seed, spec.name).
void FillInitialParameter(const ParameterSpec& spec, uint64_t seed, const at::Tensor& tensor);
// The same in memory of its own.
at::Tensor InitialParameter(const ParameterSpec& spec, uint64_t seed);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_KEYED_RANDOM_H_
