#include "launch/plan_job/parking_region.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace siphon {
namespace {

ParkingPlace Lender(int device) { return {Placement::kPeerSwap, DeviceId(device)}; }
constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};

WorkerParking Parked(const std::vector<std::pair<ParkingPlace, int64_t>>& bytes) {
  WorkerParking worker;
  for (const auto& [place, at] : bytes) worker.bytes[place] = Bytes(at);
  return worker;
}

TEST(ParkingRegion, IsEmptyWhereNobodyLends) {
  EXPECT_EQ(LayOutRegion({}), ParkingRegion());
  EXPECT_EQ(LayOutRegion({Parked({{kHost, 640}}), Parked({})}), ParkingRegion());
}

// Worker 0 parks with devices 2 and 3, worker 1 with device 3; device 3 begins at a page.
TEST(ParkingRegion, ByHand) {
  const ParkingRegion region =
      LayOutRegion({Parked({{Lender(2), 100}, {Lender(3), 5000}, {kHost, 9999}}),
                    Parked({{Lender(3), 64}}), Parked({})});
  const std::vector<ParkingRegion::Part> expected = {
      {DeviceId(2), WorkerId(0), Bytes(0), Bytes(100)},
      {DeviceId(3), WorkerId(0), Bytes(4096), Bytes(5000)},
      {DeviceId(3), WorkerId(1), Bytes(4096 + 5056), Bytes(64)}};  // 5000 rounded up to 64s
  EXPECT_EQ(region.parts, expected);
  EXPECT_EQ(region.bytes, Bytes(4096 + 5056 + 64));
}

TEST(ParkingRegion, GivesEachOwnerAsMuchAsItParksAndNothingTwice) {
  for (int workers = 1; workers <= 6; ++workers) {
    std::vector<WorkerParking> parking(workers);
    for (int owner = 0; owner < workers; ++owner) {
      for (int lender = 0; lender < workers; ++lender) {
        const int64_t bytes = (owner * 7919 + lender * 104729) % 9000;
        if (lender != owner && bytes % 3 != 0) parking[owner].bytes[Lender(lender)] = Bytes(bytes);
      }
    }
    const ParkingRegion region = LayOutRegion(parking);
    Bytes end;
    Bytes parked;
    for (const ParkingRegion::Part& part : region.parts) {
      EXPECT_GE(part.offset, end);
      EXPECT_EQ(part.offset.value % 64, 0);
      end = part.offset + part.bytes;
      parked += part.bytes;
      EXPECT_EQ(part.bytes, parking[part.owner.value].bytes.at(Lender(part.lender.value)));
    }
    EXPECT_EQ(end, region.bytes);
    Bytes lent;
    for (int lender = 0; lender < workers; ++lender) lent += LentBytes(parking, DeviceId(lender));
    EXPECT_EQ(parked, lent);
  }
}

}  // namespace
}  // namespace siphon
