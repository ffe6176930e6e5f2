#ifndef SIPHON_PLANNER_KEYED_HASH_H_
#define SIPHON_PLANNER_KEYED_HASH_H_

#include <cstdint>
#include <initializer_list>

#include "absl/strings/string_view.h"

namespace siphon {

// What a random draw is for; part of its key, so that no two purposes share numbers.
enum class RandomPurpose : uint64_t {
  kDropout = 1,
  kInitialWeight = 2,
  kDataOrder = 3,
  kTokenMask = 4,
  kSyntheticData = 5,
  kSampling = 6
};

// A well-mixed 64-bit hash of the purpose and the numbers, in order. The same on every machine.
uint64_t KeyedHash(RandomPurpose purpose, std::initializer_list<uint64_t> numbers);
// The same of a text (a parameter's name).
uint64_t KeyedHash(RandomPurpose purpose, uint64_t seed, absl::string_view text);
// Both halves folded together: the CPU generator reads 32 bits.
uint32_t FoldTo32(uint64_t key);

// A small generator for data order and masks, which are made without LibTorch. splitmix64 (Steele
// et al. 2014).
class KeyedGenerator {
 public:
  explicit KeyedGenerator(uint64_t key) : state_(key) {}
  uint64_t Next();
  // Uniform in [0, bound), without bias. Requires: bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform in [0, 1) with 53 bits.
  double Uniform();

 private:
  uint64_t state_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_KEYED_HASH_H_
