#ifndef SIPHON_LAUNCH_DATA_BATCHES_H_
#define SIPHON_LAUNCH_DATA_BATCHES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/data/dataset.h"

namespace siphon {

// One global batch, cut into microbatches. Memory is 64-byte aligned for each microbatch.
struct Batch {
  struct Microbatch {
    absl::Span<const std::byte> input;   // [microbatch, ...sample]
    absl::Span<const std::byte> target;  // [microbatch, ...sample]
  };
  std::vector<std::byte> memory;
  std::vector<Microbatch> microbatches;
  TensorSpec input_spec;
  TensorSpec target_spec;
  int64_t target_count = 0;  // targets other than kIgnoredTarget in the global batch
};

struct BatchShape {
  int64_t global_batch = 1;
  int64_t microbatch = 1;
};

// The training batch that begins at the `first_sample`-th sample ever consumed. Each epoch is a permutation of all samples
// keyed by (seed, epoch); batches run on across the border of epochs. Nothing else is state: `first_sample` is the data
// position of a checkpoint, whatever the batch size was before.
absl::StatusOr<Batch> TrainingBatch(const Dataset& data, const BatchShape& shape, uint64_t seed, int64_t first_sample);

// Validation batch `index`, in the order of the file; whole batches only.
absl::StatusOr<Batch> ValidationBatch(const Dataset& data, const BatchShape& shape, uint64_t seed, int64_t index);
int64_t ValidationBatchCount(const Dataset& data, const BatchShape& shape);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_DATA_BATCHES_H_
