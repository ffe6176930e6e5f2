#include "launch/config/closest_name.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

TEST(ClosestName, FindsTheNameAtTheLeastDistance) {
  const std::vector<std::string> known = {"steps", "stages", "microbatch", "global_batch"};
  EXPECT_EQ(ClosestName("step", known), "steps");
  EXPECT_EQ(ClosestName("setps", known), "steps");
  EXPECT_EQ(ClosestName("stage", known), "stages");
  EXPECT_EQ(ClosestName("micro-batch", known), "microbatch");
  EXPECT_EQ(ClosestName("GLOBAL-BATCH", known), "global_batch");
}

TEST(ClosestName, FindsNothingWhereNothingIsNear) {
  EXPECT_EQ(ClosestName("zebra", {"steps", "stages"}), "");
  EXPECT_EQ(ClosestName("", {"steps"}), "");
  EXPECT_EQ(ClosestName("ab", {"xy"}), "");
  EXPECT_EQ(ClosestName("steps", {}), "");
  EXPECT_EQ(ClosestName(std::string(100'000, 's'), {"steps"}), "");
}

TEST(QuoteForMessage, CutsLongTextAtALetterAndShowsControlCharacters) {
  EXPECT_EQ(QuoteForMessage("steps"), "'steps'");
  EXPECT_EQ(QuoteForMessage("a\nb"), "'a\\x0ab'");
  EXPECT_EQ(QuoteForMessage(std::string(61, 'a')), "'" + std::string(60, 'a') + "...'");
  EXPECT_EQ(QuoteForMessage(std::string(59, 'a') + "\xC3\xA9"),
            "'" + std::string(59, 'a') + "...'");
}

}  // namespace
}  // namespace siphon
