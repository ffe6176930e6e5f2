#ifndef SIPHON_TESTS_SUPPORT_TOKEN_BATCHES_H_
#define SIPHON_TESTS_SUPPORT_TOKEN_BATCHES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/stage_compute.h"
#include "planner/model_spec.h"

namespace siphon {

// Global batches of random tokens with the memory that they point to. Copies share it.
struct TokenBatches {
  std::vector<StepInputs> steps;  // of training; steps[i].step == i
  std::shared_ptr<void> memory;
};

struct TokenBatchShape {
  int steps = 1;
  int microbatches = 1;
  int microbatch = 2;  // sequences
};

// Next-token models: a target for each position. Masked models: about every sixth position, others
// kIgnoredTarget; at least one in a global batch, so that the loss has a denominator.
TokenBatches MakeTokenBatches(const ModelSpec& model, const TokenBatchShape& shape, uint64_t seed);

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_TOKEN_BATCHES_H_
