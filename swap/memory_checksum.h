#ifndef SIPHON_SWAP_MEMORY_CHECKSUM_H_
#define SIPHON_SWAP_MEMORY_CHECKSUM_H_

#include <cstddef>
#include <cstdint>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace siphon {

// Of 64 bits; equal within this process only.
inline uint64_t MemoryChecksum(absl::Span<const std::byte> bytes) {
  return absl::HashOf(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace siphon

#endif  // SIPHON_SWAP_MEMORY_CHECKSUM_H_
