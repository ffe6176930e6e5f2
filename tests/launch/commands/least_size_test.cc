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
  int64_t hint = 0;  // of those that find nothing
  std::vector<int64_t> tried;

  SizeTried<int64_t> operator()(int64_t size) {
    tried.push_back(size);
    if (size < least) return {std::nullopt, hint};
    return {size, std::min(size, used)};
  }
};

std::optional<int64_t> Search(const SizeRange& range, Attempts& attempts) {
  return LeastSize<int64_t>(range, [&](int64_t size) { return attempts(size); });
}

TEST(LeastSize, IsWithinOneInAHundredOfTheLeast) {
  for (const int64_t least : {101, 150, 999, 5'000, 77'777, 100'000}) {
    Attempts attempts{.least = least, .used = 100'000};
    const auto found = Search({100, 100'000}, attempts);
    ASSERT_TRUE(found.has_value());
    EXPECT_GE(*found, least);
    EXPECT_LE(*found, least + least / 99 + 1) << least;
    EXPECT_LE(attempts.tried.size(), 14u) << least;
  }
}

// What is more than enough says how much is.
TEST(LeastSize, TriesWhatWasUsed) {
  Attempts attempts{.least = 5'000, .used = 5'000};
  const auto found = Search({4'990, 100'000}, attempts);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, 5'000);
  EXPECT_EQ(attempts.tried, (std::vector<int64_t>{100'000, 5'000}));
}

// What is likely to be enough is tried with a hundredth more, and then a hundredth less than that:
// so of what finds nothing, and takes longest, there is one.
TEST(LeastSize, BeginsWithWhatIsLikely) {
  Attempts attempts{.least = 5'003, .used = 100'000};
  EXPECT_EQ(Search({10, 100'000, 5'000}, attempts), 5'050);
  EXPECT_EQ(attempts.tried, (std::vector<int64_t>{5'050, 5'000}));
}

TEST(LeastSize, TakesHintsOfWhatFoundNothing) {
  Attempts attempts{.least = 7'003, .used = 100'000, .hint = 7'000};
  EXPECT_EQ(Search({10, 100'000, 5'000}, attempts), 7'070);
  EXPECT_EQ(attempts.tried, (std::vector<int64_t>{5'050, 7'070, 7'000}));
}

TEST(LeastSize, IsWithinOneInAHundredWhateverIsLikely) {
  for (const int64_t least : {101, 150, 999, 5'000, 77'777, 100'000}) {
    for (const int64_t likely : {1, 100, 150, 998, 1'100, 77'000, 99'999, 200'000}) {
      Attempts attempts{.least = least, .used = 100'000, .hint = likely};
      const auto found = Search({100, 100'000, likely}, attempts);
      ASSERT_TRUE(found.has_value());
      EXPECT_GE(*found, least);
      EXPECT_LE(*found, least + least / 99 + 1) << least << " " << likely;
      EXPECT_LE(attempts.tried.size(), 20u) << least << " " << likely;
    }
  }
}

TEST(LeastSize, IsExactWhereSizesAreSmall) {
  Attempts attempts{.least = 7, .used = 50};
  EXPECT_EQ(Search({2, 50}, attempts), 7);
  Attempts next{.least = 1, .used = 50};
  EXPECT_EQ(Search({0, 50}, next), 1);
}

TEST(LeastSize, FindsNothingWhereTheLargestIsTooLittle) {
  Attempts attempts{.least = 60, .used = 60};
  EXPECT_FALSE(Search({2, 50}, attempts).has_value());
  EXPECT_EQ(attempts.tried, (std::vector<int64_t>{50}));
}

}  // namespace
}  // namespace siphon
