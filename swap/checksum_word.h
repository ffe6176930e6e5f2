#ifndef SIPHON_SWAP_CHECKSUM_WORD_H_
#define SIPHON_SWAP_CHECKSUM_WORD_H_

#include <cstdint>

#ifdef __CUDACC__
#define SIPHON_HOST_DEVICE __host__ __device__
#else
#define SIPHON_HOST_DEVICE
#endif

namespace siphon {

// What a word of 8 bytes (little endian, the last one filled up with zeros) adds to the checksum of
// its bytes. The sum over all words does not depend on their order in time, so that the threads of
// a device add theirs as they come; the word's place is in its term, so that words that are
// exchanged are seen. Both halves of a product, folded: as wyhash mixes (Wang Yi 2019).
SIPHON_HOST_DEVICE inline uint64_t ChecksumTerm(uint64_t word, uint64_t place) {
  const uint64_t placed = word + (place + 1) * 0x9E3779B97F4A7C15u;
  constexpr uint64_t kFactor = 0xD6E8FEB86659FD93u;
#ifdef __CUDA_ARCH__
  return (placed * kFactor) ^ __umul64hi(placed, kFactor);
#else
  __extension__ const auto product = static_cast<unsigned __int128>(placed) * kFactor;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#endif
}

// The term of the number of bytes, so that zeros at the end count.
SIPHON_HOST_DEVICE inline uint64_t ChecksumOfSize(uint64_t bytes) {
  return ChecksumTerm(bytes, 0x5349504830000000u);
}

}  // namespace siphon

#endif  // SIPHON_SWAP_CHECKSUM_WORD_H_
