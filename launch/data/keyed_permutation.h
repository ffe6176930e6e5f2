#ifndef SIPHON_LAUNCH_DATA_KEYED_PERMUTATION_H_
#define SIPHON_LAUNCH_DATA_KEYED_PERMUTATION_H_

#include <cstdint>

namespace siphon {

// A pseudo-random permutation of [0, size), computed place by place: no table, nothing to keep, any
// thread. A balanced Feistel network over the next power of four, walked along its cycle until a
// value within the size comes (Black and Rogaway 2002, "Ciphers with arbitrary finite domains",
// section 3).
class KeyedPermutation {
 public:
  // Requires: 0 < size <= 2^62.
  KeyedPermutation(uint64_t key, uint64_t size);

  // The value at `place`. Requires: place < size. Complexity: fewer than four walks on average.
  uint64_t operator()(uint64_t place) const;

 private:
  uint64_t Encipher(uint64_t value) const;

  uint64_t key_;
  uint64_t size_;
  int half_bits_ = 1;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_DATA_KEYED_PERMUTATION_H_
