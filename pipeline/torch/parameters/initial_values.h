#ifndef SIPHON_PIPELINE_TORCH_INITIAL_VALUES_H_
#define SIPHON_PIPELINE_TORCH_INITIAL_VALUES_H_

#include <cstdint>
#include <vector>

#include "pipeline/torch/parameters/held_parameter.h"
#include "planner/memory_plan.h"

namespace siphon {

// Tensors of a parameter that are to have what training starts with.
struct StartOf {
  HeldParameter* parameter = nullptr;
  std::vector<GroupKind> kinds;  // of it; each has memory
};

// Writes it. A parameter is drawn once, in float32 on the CPU, whatever computes, so that a model
// starts with the same bits anywhere; a value of 16 bits is rounded from its master, or where that
// is not here from float32 in memory that no ledger counts. At most so many threads draw, the
// caller's among them, and put their work onto its stream; every draw has a key of its own, so the
// bits are those of one thread. Throws as LibTorch does.
void Initialise(uint64_t seed, const std::vector<StartOf>& starts, int threads);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_INITIAL_VALUES_H_
