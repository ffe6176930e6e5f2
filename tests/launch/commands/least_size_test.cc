#include "launch/commands/least_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace siphon {
namespace {

// Attempts that find something from `least` on and use `used` of it at most.
struct Attempts {
  int64_t least = 0;
  int64_t used = 0;
  std::vector<int64_t> tried;

  std::optional<SizeTried<int64_t>> operator()(int64_t size) {
    tried.push_back(size);
    if (size < least) return std::nullopt;
    return SizeTried<int64_t>{size, std::min(size, used)};
  }
};

std::optional<SizeTried<int64_t>> Search(int64_t too_little, int64_t enough, Attempts& attempts) {
  return LeastSize<int64_t>(too_little, enough, [&](int64_t size) { return attempts(size); });
}

TEST(LeastSize, IsWithinOneInAHundredOfTheLeast) {
  for (const int64_t least : {101, 150, 999, 5'000, 77'777, 100'000}) {
    Attempts attempts{.least = least, .used = 100'000};
    const auto found = Search(100, 100'000, attempts);
    ASSERT_TRUE(found.has_value());
    EXPECT_GE(found->found, least);
    EXPECT_LE(found->found, least + least / 99 + 1) << least;
    EXPECT_LE(attempts.tried.size(), 14u) << least;
  }
}

// What is more than enough says how much is.
TEST(LeastSize, TriesWhatWasUsed) {
  Attempts attempts{.least = 5'000, .used = 5'000};
  const auto found = Search(4'990, 100'000, attempts);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->found, 5'000);
  EXPECT_EQ(attempts.tried, (std::vector<int64_t>{100'000, 5'000}));
}

TEST(LeastSize, IsExactWhereSizesAreSmall) {
  Attempts attempts{.least = 7, .used = 50};
  EXPECT_EQ(Search(2, 50, attempts)->found, 7);
  Attempts next{.least = 1, .used = 50};
  EXPECT_EQ(Search(0, 50, next)->found, 1);
}

TEST(LeastSize, FindsNothingWhereTheLargestIsTooLittle) {
  Attempts attempts{.least = 60, .used = 60};
  EXPECT_FALSE(Search(2, 50, attempts).has_value());
  EXPECT_EQ(attempts.tried, (std::vector<int64_t>{50}));
}

}  // namespace
}  // namespace siphon
