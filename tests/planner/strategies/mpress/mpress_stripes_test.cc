#include "planner/strategies/mpress/mpress_stripes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace siphon {
namespace {

using testing::ElementsAre;

constexpr CopyEngines kMesh = CopyEngines::kOnePerPeer;
constexpr CopyEngines kSwitch = CopyEngines::kOneForAllPeers;
constexpr MpressStriping kStriped = MpressStriping::kStriped;

Lender LenderOf(int device, int64_t rate, int64_t spare) {
  return {DeviceId(device), BytesPerSecond(rate), Bytes(spare)};
}

// Device 0 of a DGX-1: one link to 1 and 2, two to 3 and 4 (MPress, Figure 3).
TEST(MpressStripes, FollowTheLinksOnAMesh) {
  const auto stripes = StripesWithin(
      {Bytes(60)},
      {LenderOf(1, 25, 900), LenderOf(2, 25, 900), LenderOf(3, 50, 900), LenderOf(4, 50, 900)},
      kMesh, kStriped, Bytes(1));
  ASSERT_TRUE(stripes.has_value());
  EXPECT_THAT(*stripes,
              ElementsAre(Stripe{DeviceId(1), Bytes(10)}, Stripe{DeviceId(2), Bytes(10)},
                          Stripe{DeviceId(3), Bytes(20)}, Stripe{DeviceId(4), Bytes(20)}));
}

TEST(MpressStripes, AreEqualOnASwitch) {
  const auto stripes = StripesWithin({Bytes(60)}, {LenderOf(1, 25, 900), LenderOf(3, 50, 900)},
                                     kSwitch, kStriped, Bytes(1));
  ASSERT_TRUE(stripes.has_value());
  EXPECT_THAT(*stripes,
              ElementsAre(Stripe{DeviceId(1), Bytes(30)}, Stripe{DeviceId(3), Bytes(30)}));
}

// Device 3's share of two copies would be 80 bytes.
TEST(MpressStripes, GiveToOthersWhatALenderHasNoRoomFor) {
  const auto stripes = StripesWithin({Bytes(60), 2}, {LenderOf(1, 25, 900), LenderOf(3, 50, 30)},
                                     kMesh, kStriped, Bytes(1));
  ASSERT_TRUE(stripes.has_value());
  EXPECT_THAT(*stripes,
              ElementsAre(Stripe{DeviceId(1), Bytes(45)}, Stripe{DeviceId(3), Bytes(15)}));
}

TEST(MpressStripes, AreOneWithoutStriping) {
  const std::vector<Lender> lenders = {LenderOf(1, 25, 900), LenderOf(3, 50, 59),
                                       LenderOf(4, 25, 901)};
  const auto stripe =
      StripesWithin({Bytes(60)}, lenders, kMesh, MpressStriping::kOneLender, Bytes(1));
  ASSERT_TRUE(stripe.has_value());
  EXPECT_THAT(*stripe, ElementsAre(Stripe{DeviceId(4), Bytes(60)}));
  EXPECT_FALSE(StripesWithin({Bytes(902)}, lenders, kMesh, MpressStriping::kOneLender, Bytes(1)));
}

TEST(MpressStripes, AreNoneWithoutLenders) {
  EXPECT_FALSE(StripesWithin({Bytes(60)}, {}, kMesh, kStriped, Bytes(1)));
  EXPECT_FALSE(StripesWithin({Bytes(60)}, {LenderOf(1, 25, 59)}, kMesh, kStriped, Bytes(1)));
}

TEST(MpressStripes, NeverPutMoreOnALenderThanItsSpareBytes) {
  std::mt19937 random(7);
  int striped = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::vector<Lender> lenders;
    int64_t room = 0;  // for one copy, in whole granules
    const StripedTensor tensor{Bytes(random() % 3'000), 1 + static_cast<int>(random() % 4)};
    const Bytes granule(1 + static_cast<int64_t>(random() % 16));
    for (int device = 0; device < static_cast<int>(random() % 6); ++device) {
      lenders.push_back(LenderOf(device, random() % 3 * 25, random() % 2'000));
      room += lenders.back().spare.value / tensor.copies / granule.value * granule.value;
    }
    const auto stripes =
        StripesWithin(tensor, lenders, random() % 2 ? kMesh : kSwitch, kStriped, granule);
    if (!stripes) {
      EXPECT_GT(tensor.bytes.value + granule.value, room) << "round " << round;
      continue;
    }
    ++striped;
    Bytes sum;
    for (const Stripe& stripe : *stripes) {
      sum += stripe.bytes;
      EXPECT_GT(stripe.bytes, Bytes(0));
      for (const Lender& lender : lenders) {
        if (lender.device != stripe.lender) continue;
        EXPECT_LE(stripe.bytes * tensor.copies, lender.spare) << "round " << round;
      }
    }
    EXPECT_EQ(sum, tensor.bytes);
  }
  EXPECT_GT(striped, 200);
}

}  // namespace
}  // namespace siphon
