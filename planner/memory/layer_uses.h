#ifndef SIPHON_PLANNER_MEMORY_LAYER_USES_H_
#define SIPHON_PLANNER_MEMORY_LAYER_USES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "planner/layer_memory.h"
#include "planner/memory/memory_estimate.h"

namespace siphon {

// What both accountings are made of.

// That model, partition, schedule, lists and profile belong together and that no sum exceeds 63
// bits. Errors: InvalidArgument with the numbers.
absl::Status CheckMemoryInputs(const MemoryInputs& inputs);

// Elements of the parameters that each layer owns: a tied one belongs to its first use.
std::vector<int64_t> OwnedElements(const ModelSpec& model);
// Of those that it uses, whoever owns them.
int64_t UsedElements(const LayerSpec& layer);

// Bytes of a tensor that was saved, of one sample.
Bytes SavedSampleBytes(const SavedTensorSpec& tensor, Precision precision);
// Of a microbatch of so many samples. What has no dimensions is there once.
Bytes SavedMicrobatchBytes(const SavedTensorSpec& tensor, int64_t microbatch, Precision precision);
// All saved tensors with their bytes for a microbatch of so many samples,
// in the order of saving; made when so many of the layer's operations before its last saved tensor
// are done.
std::vector<SavedTensor> SavedOf(const LayerMemory& memory, int64_t microbatch,
                                 Precision precision);

// For each stage the microbatches between their F and their B (or W) when its worker keeps most
// bytes, `bytes` for one microbatch of each stage. The first such moment.
std::vector<int> LiveAtFullestMoment(const Schedule& schedule, const std::vector<Bytes>& bytes);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_LAYER_USES_H_
