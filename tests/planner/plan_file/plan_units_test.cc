#include "planner/plan_file/plan_units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

namespace siphon {
namespace {

TEST(ExactText, TakesTheUnitThatReadsBest) {
  EXPECT_EQ(ExactText(Nanos(0)), "0ns");
  EXPECT_EQ(ExactText(Nanos(12'345'678)), "12.345678ms");
  EXPECT_EQ(ExactText(BytesPerSecond(24'200'000'000)), "24.2GB/s");
  EXPECT_EQ(ExactText(Bytes(0)), "0B");
  EXPECT_EQ(ExactText(Bytes(int64_t{384} << 20)), "384MiB");
  EXPECT_EQ(ExactText(Bytes(512'000'000'000)), "512GB");
  EXPECT_EQ(ExactText(Bytes(12'345)), "12345B");
  EXPECT_EQ(ExactText(Bytes(1'024'000)), "1000KiB");
}

TEST(ExactText, IsReadBackWhateverTheNumber) {
  std::mt19937_64 random(20261121);
  for (int round = 0; round < 2'000; ++round) {
    const auto number = static_cast<int64_t>(random() >> (1 + random() % 63));
    EXPECT_EQ(*ParseNanos(ExactText(Nanos(number))), Nanos(number));
    EXPECT_EQ(*ParseRate(ExactText(BytesPerSecond(number))), BytesPerSecond(number));
    EXPECT_EQ(*ParseBytes(ExactText(Bytes(number))), Bytes(number));
  }
  const int64_t largest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(*ParseBytes(ExactText(Bytes(largest))), Bytes(largest));
}

}  // namespace
}  // namespace siphon
