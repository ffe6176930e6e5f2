#include "launch/checkpoint/round_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace siphon {
namespace {

uint16_t Rounded(float value, DType type) {
  uint16_t narrow = 0;
  RoundFloats({reinterpret_cast<const std::byte*>(&value), sizeof value}, type,
              {reinterpret_cast<std::byte*>(&narrow), sizeof narrow});
  return narrow;
}

// What an fp16 stands for.
double OfFloat16(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half >> 15 ? -magnitude : magnitude;
}

TEST(RoundFloats, ToBFloat16TakesTheNearestAndTiesToEven) {
  EXPECT_EQ(Rounded(1.0F, DType::kBFloat16), 0x3f80);
  EXPECT_EQ(Rounded(-2.5F, DType::kBFloat16), 0xc020);
  EXPECT_EQ(Rounded(1.00390625F, DType::kBFloat16), 0x3f80);  // 1 + 2^-8: half way, down to even
  EXPECT_EQ(Rounded(1.01171875F, DType::kBFloat16), 0x3f82);  // 1 + 3 x 2^-8: up to even
  EXPECT_EQ(Rounded(1.00390637F, DType::kBFloat16), 0x3f81);  // beyond half way
  EXPECT_EQ(Rounded(-0.0F, DType::kBFloat16), 0x8000);
  EXPECT_EQ(Rounded(std::numeric_limits<float>::max(), DType::kBFloat16), 0x7f80);  // infinity
  EXPECT_EQ(Rounded(-std::numeric_limits<float>::infinity(), DType::kBFloat16), 0xff80);
  const uint16_t nan = Rounded(std::bit_cast<float>(0x7f800001), DType::kBFloat16);
  EXPECT_GT(nan & 0x7fff, 0x7f80) << "a NaN whose bits are all cut off stays one";
}

// Every fp16 by itself, and each point half way between two of them.
TEST(RoundFloats, ToFloat16TakesTheNearestAndTiesToEven) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const double here = OfFloat16(half), next = OfFloat16(half + 1);
    const auto middle = static_cast<float>((here + next) / 2);
    ASSERT_EQ(Rounded(static_cast<float>(here), DType::kFloat16), half);
    ASSERT_EQ(Rounded(middle, DType::kFloat16), half % 2 == 0 ? half : half + 1) << half;
    ASSERT_EQ(Rounded(std::nextafterf(middle, 0), DType::kFloat16), half) << half;
    ASSERT_EQ(Rounded(-std::nextafterf(middle, 1e9F), DType::kFloat16), 0x8000 | (half + 1));
  }
}

TEST(RoundFloats, ToFloat16EndsAtInfinity) {
  EXPECT_EQ(Rounded(65504.0F, DType::kFloat16), 0x7bff);
  EXPECT_EQ(Rounded(65519.99F, DType::kFloat16), 0x7bff);
  EXPECT_EQ(Rounded(65520.0F, DType::kFloat16), 0x7c00);
  EXPECT_EQ(Rounded(-1e30F, DType::kFloat16), 0xfc00);
  EXPECT_EQ(Rounded(std::numeric_limits<float>::infinity(), DType::kFloat16), 0x7c00);
  EXPECT_EQ(Rounded(std::numeric_limits<float>::denorm_min(), DType::kFloat16), 0);
  EXPECT_GT(Rounded(std::numeric_limits<float>::quiet_NaN(), DType::kFloat16) & 0x7fff, 0x7c00);
}

}  // namespace
}  // namespace siphon
