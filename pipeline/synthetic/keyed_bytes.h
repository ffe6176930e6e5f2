#ifndef SIPHON_PIPELINE_SYNTHETIC_KEYED_BYTES_H_
#define SIPHON_PIPELINE_SYNTHETIC_KEYED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace siphon {

// Bytes that stand for the contents of a tensor, so that whoever finds others knows that they were
// lost, changed or somebody else's. Those of a smaller size are the first ones of a larger size.
void FillKeyed(absl::Span<std::byte> bytes, uint64_t key);

// Place of the first byte that FillKeyed with this key would not have written.
std::optional<size_t> FirstDifference(absl::Span<const std::byte> bytes, uint64_t key);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_KEYED_BYTES_H_
