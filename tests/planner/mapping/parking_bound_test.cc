#include "planner/mapping/parking_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

constexpr int64_t kBytePerNano = 1'000'000'000;

ParkingTime Best(int64_t unparked, int64_t time) { return {Bytes(unparked), Nanos(time)}; }

// A row of devices 0 - 1 - 2 with 1 wire, then 2. Worker 0 parks 100, workers 1 and 2 lend 60 each.
TEST(ParkingBound, GrowsAsWorkersGetTheirDevicesByHand) {
  Topology row;
  row.devices.resize(3);
  Link(row, 0, 1, 1, kBytePerNano);
  Link(row, 1, 2, 2, kBytePerNano);
  const SwapFabric fabric = MakeSwapFabric(row);
  const ParkingDemand demand = {
      {{Bytes(100), Bytes(0)}, {Bytes(0), Bytes(60)}, {Bytes(0), Bytes(60)}}};
  const ParkingBound bound(fabric, demand);
  // Three wires are the most that any device has.
  EXPECT_EQ(bound.Of({}, {}), Best(0, 34));
  // From device 1, 60 bytes go over two wires and 40 over the other.
  EXPECT_EQ(bound.Of({{DeviceId(1)}}, {}), Best(0, 40));
  // Device 0 reaches one lender only.
  EXPECT_EQ(bound.Of({{DeviceId(0)}}, {}), Best(40, 60));
  EXPECT_EQ(bound.Of({{DeviceId(0)}}, Best(50, 1)), Best(50, 1));
}

TEST(ParkingBound, OfNothingToParkIsNothing) {
  const SwapFabric fabric = MakeSwapFabric(Dgx1V());
  const ParkingDemand demand = {{{}, {Bytes(0), Bytes(5)}}};
  EXPECT_EQ(ParkingBound(fabric, demand).Of({}, {}), Best(0, 0));
}

ParkingTime BestCompletion(const SwapFabric& fabric, const ParkingDemand& demand,
                           std::vector<int>& map) {
  if (map.size() == demand.workers.size()) return LeastParkingTime(fabric, MapOf(map), demand);
  ParkingTime best = Best(int64_t{1} << 60, 0);
  for (int device = 0; device < fabric.devices; ++device) {
    if (std::find(map.begin(), map.end(), device) != map.end()) continue;
    map.push_back(device);
    best = std::min(best, BestCompletion(fabric, demand, map));
    map.pop_back();
  }
  return best;
}

TEST(ParkingBound, IsNeverAboveTheBestCompletion) {
  std::mt19937 random(59);
  int tight = 0;
  int exact = 0;
  for (int round = 0; round < 300; ++round) {
    const int devices = 3 + round % 3;
    Topology topology = RandomMesh(devices, 2, kBytePerNano, random);
    if (round % 3 == 0) topology.copy_engines = CopyEngines::kOneForAllPeers;
    for (TopologyDevice& device : topology.devices) device.memory = Bytes(random() % 40);
    const int workers = devices - static_cast<int>(random() % 2);
    const ParkingDemand demand = RandomDemand(workers, 100, random);
    const SwapFabric fabric = MakeSwapFabric(topology);
    const ParkingBound bound(fabric, demand);
    std::vector<int> map = Shuffled(devices, random);
    map.resize(random() % (workers + 1));
    const ParkingTime least = bound.Of(MapOf(map).device_of_worker, {});
    EXPECT_EQ(bound.UnparkedOf(MapOf(map).device_of_worker), least.unparked);
    const ParkingTime best = BestCompletion(fabric, demand, map);
    EXPECT_LE(least, best) << "round " << round;
    tight += least == best ? 1 : 0;
    // Of a whole map nothing is free any more.
    if (static_cast<int>(map.size()) < workers || workers < devices || round % 3 == 0) continue;
    EXPECT_EQ(least, best) << "round " << round;
    ++exact;
  }
  EXPECT_GT(tight, 150);
  EXPECT_GT(exact, 8);
}

}  // namespace
}  // namespace siphon
