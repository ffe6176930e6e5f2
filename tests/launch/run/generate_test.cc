#include "launch/run/generate.h"

#include <gtest/gtest.h>

#include <vector>

namespace siphon {
namespace {

TEST(DrawToken, TemperatureZeroTakesTheLikeliestAndTheFirstOfEquals) {
  EXPECT_EQ(DrawToken({0, 3, 3, 1}, 0, 0, 0.99), 1);
}

TEST(DrawToken, DividesTheUnitIntervalByProbability) {
  // exp(0) : exp(ln 3) = 1 : 3, the likeliest first: [0, 0.75) is token 1.
  const std::vector<float> logits = {0, 1.0986123f};
  EXPECT_EQ(DrawToken(logits, 1, 0, 0.0), 1);
  EXPECT_EQ(DrawToken(logits, 1, 0, 0.749), 1);
  EXPECT_EQ(DrawToken(logits, 1, 0, 0.751), 0);
  EXPECT_EQ(DrawToken(logits, 1, 0, 0.9999999), 0);
}

TEST(DrawToken, TopOneIsTheLikeliestWhateverTheDraw) {
  EXPECT_EQ(DrawToken({1, 2, 0}, 5, 1, 0.999), 1);
}

TEST(DrawToken, HighTemperatureFlattens) {
  // At temperature 1e6 both are as good as equally likely.
  EXPECT_EQ(DrawToken({0, 10}, 1e6, 0, 0.49), 1);
  EXPECT_EQ(DrawToken({0, 10}, 1e6, 0, 0.51), 0);
}

TEST(Generate, NamesADirectoryWithoutCheckpoints) {
  const absl::Status status =
      Generate({.checkpoint = "/nonexistent/run", .prompt = "x"}, [](absl::string_view) {});
  EXPECT_EQ(status.message(), "no complete checkpoint in '/nonexistent/run'");
}

}  // namespace
}  // namespace siphon
