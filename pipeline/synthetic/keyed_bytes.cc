#include "pipeline/synthetic/keyed_bytes.h"

#include <algorithm>
#include <cstring>

namespace siphon {
namespace {

// The golden ratio in 64 bits: its multiples are far apart in all bits.
constexpr uint64_t kStep = 0x9E3779B97F4A7C15ull;

// Different for different keys at each place, since both lines can be undone.
uint64_t WordAt(uint64_t key, size_t index) {
  const uint64_t word = key + kStep * index;
  return word ^ (word >> 32);
}

}  // namespace

void FillKeyed(absl::Span<std::byte> bytes, uint64_t key) {
  size_t begin = 0;
  for (size_t index = 0; begin < bytes.size(); ++index) {
    const uint64_t word = WordAt(key, index);
    const size_t count = std::min(sizeof(word), bytes.size() - begin);
    std::memcpy(bytes.data() + begin, &word, count);
    begin += count;
  }
}

std::optional<size_t> FirstDifference(absl::Span<const std::byte> bytes, uint64_t key) {
  size_t begin = 0;
  for (size_t index = 0; begin < bytes.size(); ++index) {
    const uint64_t word = WordAt(key, index);
    const size_t count = std::min(sizeof(word), bytes.size() - begin);
    if (std::memcmp(bytes.data() + begin, &word, count) != 0) {
      const auto* const expected = reinterpret_cast<const std::byte*>(&word);
      const auto [found, other] =
          std::mismatch(bytes.begin() + begin, bytes.begin() + begin + count, expected);
      return static_cast<size_t>(found - bytes.begin());
    }
    begin += count;
  }
  return std::nullopt;
}

}  // namespace siphon
