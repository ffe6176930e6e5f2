#ifndef SIPHON_LAUNCH_CHECKPOINT_ROUND_FLOATS_H_
#define SIPHON_LAUNCH_CHECKPOINT_ROUND_FLOATS_H_

#include <cstddef>

#include "absl/types/span.h"
#include "planner/tensor_spec.h"

namespace siphon {

// Float32 numbers as bf16 or fp16: to the nearest, ties to even, as LibTorch rounds a master to the
// matrix that layers compute with. What is no number stays none. Requires: `type` is one of the
// two, `wide` has whole numbers and `narrow` half as many bytes.
void RoundFloats(absl::Span<const std::byte> wide, DType type, absl::Span<std::byte> narrow);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_ROUND_FLOATS_H_
