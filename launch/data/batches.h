#ifndef SIPHON_LAUNCH_DATA_BATCHES_H_
#define SIPHON_LAUNCH_DATA_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/data/dataset.h"

namespace siphon {

// One global batch, cut into microbatches. Each one's input and target start on a 64-byte boundary.
// It moves but does not copy: the spans point into its memory.
struct Batch {
  struct Microbatch {
    absl::Span<const std::byte> input;   // [microbatch, ...sample]
    absl::Span<const std::byte> target;  // [microbatch, ...sample]
  };
  struct FreeAligned {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], FreeAligned> memory;
  std::vector<Microbatch> microbatches;
  TensorSpec input_spec;     // of a microbatch
  TensorSpec target_spec;    // of a microbatch
  int64_t target_count = 0;  // targets other than kIgnoredTarget in the global batch
};

struct BatchShape {
  int64_t global_batch = 1;
  int64_t microbatch = 1;
};

// The training batch that begins at the `first_sample`-th sample ever consumed. Each epoch is a
// permutation of all samples keyed by (seed, epoch); batches run on across the border of epochs.
// Nothing else is state: `first_sample` is the data position of a checkpoint, whatever the batch
// size was before. Errors of both: InvalidArgument for a shape or position that is none;
// ResourceExhausted when the batch does not fit into memory; as Dataset::read. Complexity: linear
// in the batch, whatever the data's size.
absl::StatusOr<Batch> TrainingBatch(const Dataset& data, const BatchShape& shape, uint64_t seed,
                                    int64_t first_sample);

// Validation batch `index`, in the order of the file; whole batches only. Masks are the same each
// time.
absl::StatusOr<Batch> ValidationBatch(const Dataset& data, const BatchShape& shape, uint64_t seed,
                                      int64_t index);
int64_t ValidationBatchCount(const Dataset& data, const BatchShape& shape);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_DATA_BATCHES_H_
