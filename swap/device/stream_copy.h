#ifndef SIPHON_SWAP_DEVICE_STREAM_COPY_H_
#define SIPHON_SWAP_DEVICE_STREAM_COPY_H_

#include <cstddef>

#include "absl/types/span.h"

namespace siphon {

// From this many bytes on StreamCopy goes past the caches: what it copied would push out what the
// cores compute with, and nobody reads it soon.
inline constexpr size_t kStreamedBytes = size_t{256} << 10;

// As std::memcpy; large ones are written past the caches where the processor can (x86-64). The
// writes are ordered before whatever the thread does next, so that a lock or an atomic publishes
// them as it does ordinary ones.
//
// Requires: from.size() <= to.size(); no overlap.
void StreamCopy(absl::Span<const std::byte> from, absl::Span<std::byte> to);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_STREAM_COPY_H_
