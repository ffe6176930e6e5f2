// The masked-token objective: shares, determinism, and that no sample is without a target.

#include <gtest/gtest.h>

#include "launch/data/token_windows.h"
#include "planner/model_spec.h"

namespace siphon {
namespace {

constexpr int64_t kVocabulary = 256;

struct Masked {
  std::vector<int64_t> input;
  std::vector<int64_t> target;
};

Masked Mask(uint64_t key, size_t length, int64_t id = 65) {
  Masked masked{std::vector<int64_t>(length, id), std::vector<int64_t>(length, -1)};
  MaskTokens(key, kVocabulary, absl::MakeSpan(masked.input), absl::MakeSpan(masked.target));
  return masked;
}

TEST(MaskTokens, HasTheSharesOfTheBertPaper) {
  constexpr size_t kLength = 200'000;
  const Masked masked = Mask(7, kLength);
  double chosen = 0, mask_ids = 0, unchanged = 0, random = 0;
  for (size_t i = 0; i < kLength; ++i) {
    if (masked.target[i] == kIgnoredTarget) {
      ASSERT_EQ(masked.input[i], 65) << "a position without target was changed";
      continue;
    }
    ASSERT_EQ(masked.target[i], 65);
    ++chosen;
    mask_ids += masked.input[i] == kVocabulary;
    unchanged += masked.input[i] == 65;
    random += masked.input[i] != 65 && masked.input[i] != kVocabulary;
  }
  // Ten standard deviations of 30,000 draws are below 0.03.
  EXPECT_NEAR(chosen / kLength, 0.15, 0.01);
  EXPECT_NEAR(mask_ids / chosen, 0.8, 0.03);
  EXPECT_NEAR(random / chosen, 0.1, 0.03);
  EXPECT_NEAR(unchanged / chosen, 0.1, 0.03);
}

TEST(MaskTokens, IsAFunctionOfItsKey) {
  EXPECT_EQ(Mask(1, 500).input, Mask(1, 500).input);
  EXPECT_EQ(Mask(1, 500).target, Mask(1, 500).target);
  EXPECT_NE(Mask(1, 500).target, Mask(2, 500).target);
}

TEST(MaskTokens, GivesEverySampleATarget) {
  for (uint64_t key = 0; key < 1000; ++key) {
    const Masked masked = Mask(key, 2);
    EXPECT_NE(masked.target, std::vector<int64_t>(2, kIgnoredTarget)) << key;
  }
}

TEST(SplitSamples, TakesTheNearestNumberButOneOnEachSide) {
  EXPECT_EQ(SplitSamples(100, 0.25).training, 75);
  EXPECT_EQ(SplitSamples(100, 0.25).validation, 25);
  EXPECT_EQ(SplitSamples(100, 0.001).validation, 1);
  EXPECT_EQ(SplitSamples(100, 0.999).training, 1);
  EXPECT_EQ(SplitSamples(100, 0).training, 100);
  EXPECT_EQ(SplitSamples(100, 0).validation, 0);
  EXPECT_EQ(SplitSamples(1, 0.5).training, 0);
}

}  // namespace
}  // namespace siphon
