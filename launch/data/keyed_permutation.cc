#include "launch/data/keyed_permutation.h"

#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Three rounds make it hard to tell from random for one who does not choose the places (Luby,
// Rackoff 1988); small domains need some more.
constexpr uint64_t kRounds = 6;

}  // namespace

KeyedPermutation::KeyedPermutation(uint64_t key, uint64_t size) : key_(key), size_(size) {
  SIPHON_CHECK(size > 0 && size <= uint64_t{1} << 62, "a permutation has 1 to 2^62 places");
  while (uint64_t{1} << (2 * half_bits_) < size) ++half_bits_;
}

uint64_t KeyedPermutation::Encipher(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t mixed = KeyedHash(RandomPurpose::kDataOrder, {key_, round, right});
    const uint64_t next = left ^ (mixed & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

uint64_t KeyedPermutation::operator()(uint64_t place) const {
  SIPHON_CHECK(place < size_, "a place is within the permutation");
  uint64_t value = Encipher(place);
  while (value >= size_) value = Encipher(value);
  return value;
}

}  // namespace siphon
