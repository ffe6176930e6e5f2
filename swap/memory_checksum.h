#ifndef SIPHON_SWAP_MEMORY_CHECKSUM_H_
#define SIPHON_SWAP_MEMORY_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "swap/checksum_word.h"

namespace siphon {

// Of 64 bits; the same in every process, and from swap/device/cuda_checksum.cu on a device. Against
// accidents, not against people.
inline uint64_t MemoryChecksum(absl::Span<const std::byte> bytes) {
  uint64_t sum = ChecksumOfSize(bytes.size());
  const size_t words = bytes.size() / sizeof(uint64_t);
  uint64_t word = 0;
  for (size_t place = 0; place < words; ++place) {
    std::memcpy(&word, bytes.data() + place * sizeof(word), sizeof(word));
    sum += ChecksumTerm(word, place);
  }
  const size_t rest = bytes.size() % sizeof(word);
  if (rest == 0) return sum;
  word = 0;
  std::memcpy(&word, bytes.data() + words * sizeof(word), rest);
  return sum + ChecksumTerm(word, words);
}

}  // namespace siphon

#endif  // SIPHON_SWAP_MEMORY_CHECKSUM_H_
