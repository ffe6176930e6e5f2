#include "launch/checkpoint/round_floats.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "planner/status.h"

namespace siphon {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff;
constexpr uint32_t kInfinity = 0x7f800000;

// `bits` without the last `dropped` ones, to the nearest, ties to even. A carry into the exponent
// is what it should be.
uint32_t DropBits(uint32_t bits, int dropped) {
  const uint32_t odd = bits >> dropped & 1;
  return (bits + (1u << (dropped - 1)) - 1 + odd) >> dropped;
}

// bf16 is a float32 without its last 16 bits.
uint16_t ToBFloat16(uint32_t bits) {
  if ((bits & kMagnitude) > kInfinity) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>(DropBits(bits, 16));
}

// fp16 has 5 bits of exponent, biased by 15, and 10 of mantissa; float32 8, by 127, and 23.
uint16_t ToFloat16(uint32_t bits) {
  constexpr uint32_t kRebias = uint32_t{127 - 15} << 23;
  constexpr uint32_t kSmallestNormal = uint32_t{127 - 14} << 23;  // 2^-14
  constexpr uint32_t kHalfInfinity = 0x7c00;
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & kMagnitude;
  uint32_t half = kHalfInfinity;
  if (magnitude > kInfinity) {
    half = kHalfInfinity | 0x200;
  } else if (magnitude < kSmallestNormal) {
    // A float32 of [0.5, 1) has steps of 2^-24, which are those of small fp16 numbers.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F);
  } else if (const uint32_t rounded = DropBits(magnitude - kRebias, 13); rounded < half) {
    half = rounded;
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace

void RoundFloats(absl::Span<const std::byte> wide, DType type, absl::Span<std::byte> narrow) {
  SIPHON_CHECK(type == DType::kBFloat16 || type == DType::kFloat16, "both have 16 bits");
  SIPHON_CHECK(wide.size() == 2 * narrow.size() && wide.size() % sizeof(uint32_t) == 0,
               "each number has its place");
  const size_t count = wide.size() / sizeof(uint32_t);
  for (size_t index = 0; index < count; ++index) {
    uint32_t bits = 0;
    std::memcpy(&bits, wide.data() + index * sizeof bits, sizeof bits);
    const uint16_t rounded = type == DType::kBFloat16 ? ToBFloat16(bits) : ToFloat16(bits);
    std::memcpy(narrow.data() + index * sizeof rounded, &rounded, sizeof rounded);
  }
}

}  // namespace siphon
