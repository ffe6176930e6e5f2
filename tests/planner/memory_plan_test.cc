#include "planner/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace siphon {
namespace {

TEST(CutStripes, FollowsTheWeightsInWholeGranules) {
  const std::vector<Stripe> stripes =
      CutStripes(Bytes(600), {{DeviceId(3), 2}, {DeviceId(4), 1}}, Bytes(64));
  // 9 granules and 24 bytes: 6 and 3 granules, the rest goes to the last.
  const std::vector<Stripe> expected = {{DeviceId(3), Bytes(384)}, {DeviceId(4), Bytes(216)}};
  EXPECT_EQ(stripes, expected);
}

TEST(CutStripes, GivesWhatIsSmallerThanAGranuleToTheWidestLender) {
  const std::vector<Stripe> expected = {{DeviceId(4), Bytes(63)}};
  EXPECT_EQ(CutStripes(Bytes(63), {{DeviceId(3), 1}, {DeviceId(4), 2}}, Bytes(64)), expected);
}

TEST(CutStripes, AlwaysAddsUpAndStaysWithinAGranuleOfTheProportion) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const Bytes granule(1 + random() % 100);
    const Bytes bytes(random() % 1'000'000);
    std::vector<LenderWeight> weights;
    int64_t all = 0;
    for (int lender = 0, lenders = 1 + random() % 7; lender < lenders; ++lender) {
      weights.push_back({DeviceId(lender), 1 + static_cast<int64_t>(random() % 50)});
      all += weights.back().weight;
    }
    Bytes sum;
    for (const Stripe& stripe : CutStripes(bytes, weights, granule)) {
      sum += stripe.bytes;
      const double share = static_cast<double>(weights[stripe.lender.value].weight) / all;
      EXPECT_NEAR(stripe.bytes.value, share * bytes.value, 2.0 * granule.value);
    }
    EXPECT_EQ(sum, bytes);
  }
}

TEST(BytesWith, CountsActivationsOnceALiveMicrobatchAndTheRestOnce) {
  MemoryPlan plan;
  plan.stages.resize(2);
  plan.stages[0].groups = {{{.bytes = Bytes(10)}, {.placement = Placement::kHostSwap}},
                           {{.kind = GroupKind::kOptimizerState, .bytes = Bytes(7)},
                            {.placement = Placement::kHostSwap}}};
  plan.stages[1].groups = {{{.bytes = Bytes(100)}, {.placement = Placement::kRecompute}}};
  EXPECT_EQ(BytesWith(plan, Placement::kHostSwap, {{3}, {2}}), Bytes(37));
  EXPECT_EQ(BytesWith(plan, Placement::kRecompute, {{3}, {2}}), Bytes(200));
  EXPECT_EQ(BytesWith(plan, Placement::kNvmeSwap, {{3}, {2}}), Bytes(0));
}

}  // namespace
}  // namespace siphon
