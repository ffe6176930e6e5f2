#include "swap/parking_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/swap/parking_lot.h"

namespace siphon {
namespace {

using testing::SizeIs;

constexpr ParkingPlace kHostPlace = {.tier = Placement::kHostSwap};
constexpr ParkingPlace kDevice3 = {.tier = Placement::kPeerSwap, .lender = DeviceId(3)};
constexpr ParkingSlots::GroupPlace kFirstGroup = {StageId(0), GroupId(0)};
constexpr ParkingSlots::GroupPlace kSecondGroup = {StageId(0), GroupId(1)};

// Group 0: three slots of 100 bytes at device 3 and 28 at the host.
WorkerParking ThreeSlots() {
  WorkerParking parking;
  AddSlots(parking, 0, 3, {{kDevice3, 100}, {kHostPlace, 28}});
  return parking;
}

TEST(ParkingSlots, AreTakenFromTheFirstAndTheLatestThatCameBackIsTakenNext) {
  ParkingLot lot(ThreeSlots());
  ParkingSlots slots(ThreeSlots(), lot.Memory());
  const std::vector<ParkingSlot>& all = slots.all().at(kFirstGroup);
  const ParkingSlot* const first = slots.Take(kFirstGroup);
  EXPECT_EQ(first, &all[0]);
  EXPECT_EQ(slots.Take(kFirstGroup), &all[1]);
  slots.GiveBack(kFirstGroup, first);
  EXPECT_EQ(slots.CountFree(kFirstGroup), 2u);
  EXPECT_EQ(slots.Take(kFirstGroup), &all[0]);
  EXPECT_EQ(slots.Take(kFirstGroup), &all[2]);
  EXPECT_EQ(slots.Take(kFirstGroup), nullptr);
  EXPECT_EQ(slots.Count(kFirstGroup), 3u);
  EXPECT_EQ(slots.Count(kSecondGroup), 0u) << "not parked by this plan";
}

TEST(ParkingSlots, AreThePiecesOfTheirPlaces) {
  ParkingLot lot(ThreeSlots());
  const ParkingSlots slots(ThreeSlots(), lot.Memory());
  const ParkingSlot& second = slots.all().at(kFirstGroup)[1];
  EXPECT_EQ(RoomOf(second), Bytes(128));
  EXPECT_EQ(ToString(second), "device 3 [128, 228), host [64, 92)");
  const std::vector<SlotMemory> memory = slots.MemoryOf(second);
  ASSERT_THAT(memory, SizeIs(2));
  EXPECT_EQ(memory[0].bytes.data(), lot.At(kDevice3).data() + 128);
  EXPECT_EQ(memory[0].bytes.size(), 100u);
  EXPECT_EQ(memory[1].bytes.data(), lot.At(kHostPlace).data() + 64);
  EXPECT_NE(memory[0].link, memory[1].link);
}

// Slot 0 is taken; device 3 is left, the host has other memory.
TEST(ParkingSlots, OfAnotherPlanHaveTheSameNumbersTakenAndFindWhatIsThere) {
  ParkingLot old_lot(ThreeSlots());
  ParkingSlots before(ThreeSlots(), old_lot.Memory());
  const ParkingSlot* const taken = before.Take(kFirstGroup);
  WorkerParking parking;
  AddSlots(parking, 1, 2, {{kHostPlace, 64}});
  AddSlots(parking, 0, 3, {{kHostPlace, 128}});
  ParkingLot lot(parking);
  ParkingSlots slots(parking, lot.Memory());
  slots.TakeOver(before);
  EXPECT_EQ(slots.CountFree(kFirstGroup), 2u);
  EXPECT_EQ(slots.CountFree(kSecondGroup), 2u) << "new: all of them";
  EXPECT_EQ(slots.Follower(kFirstGroup, before, taken), &slots.all().at(kFirstGroup)[0]);
  EXPECT_EQ(slots.Take(kFirstGroup), &slots.all().at(kFirstGroup)[1]);
  const std::vector<SlotMemory> from = before.MemoryOf(*taken);
  EXPECT_EQ(from[0].bytes.data(), old_lot.At(kDevice3).data());
  EXPECT_EQ(from[1].bytes.data(), lot.At(kHostPlace).data()) << "the host stays, where it is now";
}

}  // namespace
}  // namespace siphon
