#include "launch/commands/plan_map.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

constexpr MapProof kHalfway{.time = Nanos(1'030'000'000),
                            .least_time = Nanos(1'000'000'000),
                            .evaluated = 12,
                            .bounded = 3456};

TEST(MapText, SaysByHowMuchAnotherMapCouldBeBetterAtMost) {
  EXPECT_EQ(MapText(kHalfway),
            "has a step of 1.03 s with the draft it was searched for; it is at most 3.00 % above "
            "the best one: no map has a step below 1.00 s (12 maps simulated, 3456 parts bounded)");
}

TEST(MapText, SaysWhenNoMapIsBetter) {
  MapProof proof{.score = MappingScore::kSwapTime,
                 .time = Nanos(27'000'000),
                 .least_time = Nanos(27'000'000),
                 .proven = true,
                 .evaluated = 1,
                 .bounded = 1};
  EXPECT_EQ(MapText(proof),
            "has a longest D2D swap of 27.0 ms with the draft it was searched for; proven, no map "
            "is better (1 map calculated, 1 part bounded)");
}

TEST(MapText, SpeaksOfRoomWhereSomethingHasNone) {
  MapProof proof = kHalfway;
  proof.missing = Bytes(3 << 20);
  proof.least_missing = Bytes(1 << 20);
  EXPECT_EQ(MapText(proof),
            "leaves no room for 3.00 MiB with the draft it was searched for; another map may have "
            "room for 2.00 MiB more (12 maps simulated, 3456 parts bounded)");
}

TEST(MapText, ClaimsNothingWithoutABound) {
  MapProof proof = kHalfway;
  proof.least_time = Nanos(0);
  EXPECT_EQ(MapText(proof),
            "has a step of 1.03 s with the draft it was searched for; how much better another map "
            "may be is not known (12 maps simulated, 3456 parts bounded)");
}

}  // namespace
}  // namespace siphon
