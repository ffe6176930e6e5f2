#include "planner/strategies/mpress/mpress_rule.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

// MPress, section IV.D: t2 of Table III.
TEST(MpressRule, CountsWhatDoesNotFitIntoTheLiveInterval) {
  const TensorTimes tensor{.live_interval = Nanos(16),
                           .recompute = Nanos(3),
                           .host_swap = Nanos(22),
                           .peer_swap = Nanos(3)};
  EXPECT_EQ(MpressOverhead(tensor, Placement::kKeep), Nanos(0));
  EXPECT_EQ(MpressOverhead(tensor, Placement::kRecompute), Nanos(3));
  EXPECT_EQ(MpressOverhead(tensor, Placement::kHostSwap), Nanos(6));
  EXPECT_EQ(MpressOverhead(tensor, Placement::kPeerSwap), Nanos(0));
  EXPECT_EQ(MpressChoice(tensor), Placement::kPeerSwap);
}

TEST(MpressRule, PrefersTheHostWhereBothSwapsAreHidden) {
  EXPECT_EQ(MpressChoice({.live_interval = Nanos(42),
                          .recompute = Nanos(1),
                          .host_swap = Nanos(42),
                          .peer_swap = Nanos(6)}),
            Placement::kHostSwap);
}

TEST(MpressRule, PrefersRecomputationToAPeerSwapThatAddsAsMuch) {
  TensorTimes tensor{.live_interval = Nanos(2),
                     .recompute = Nanos(4),
                     .host_swap = Nanos(42),
                     .peer_swap = Nanos(6)};
  EXPECT_EQ(MpressChoice(tensor), Placement::kRecompute);
  tensor.peer_swap = Nanos(5);
  EXPECT_EQ(MpressChoice(tensor), Placement::kPeerSwap);
}

TEST(MpressRule, TakesOnlyWaysThatAreOpen) {
  EXPECT_EQ(MpressChoice({.live_interval = Nanos(2)}), Placement::kKeep);
  EXPECT_EQ(MpressChoice({.live_interval = Nanos(2), .host_swap = Nanos(900)}),
            Placement::kHostSwap);
  EXPECT_EQ(
      MpressChoice({.live_interval = Nanos(2), .recompute = Nanos(899), .host_swap = Nanos(900)}),
      Placement::kHostSwap);
  EXPECT_EQ(
      MpressChoice({.live_interval = Nanos(2), .recompute = Nanos(897), .host_swap = Nanos(900)}),
      Placement::kRecompute);
}

// Whatever the times: no open way adds less than the choice.
TEST(MpressRule, NeverAddsMoreThanAnotherWay) {
  for (int64_t live = 0; live < 6; ++live) {
    for (int64_t times = 0; times < 6 * 6 * 6; ++times) {
      const TensorTimes tensor{.live_interval = Nanos(live),
                               .recompute = Nanos(times % 6),
                               .host_swap = Nanos(times / 6 % 6),
                               .peer_swap = Nanos(times / 36)};
      const Nanos least = MpressOverhead(tensor, MpressChoice(tensor));
      for (const Placement placement :
           {Placement::kRecompute, Placement::kHostSwap, Placement::kPeerSwap}) {
        EXPECT_LE(least, MpressOverhead(tensor, placement));
      }
    }
  }
}

}  // namespace
}  // namespace siphon
