#include "planner/drafts/maps/private_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "planner/mapping/swap_fabric.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

constexpr PrivateWays::Message kDown{WorkerId(0), WorkerId(1)};
constexpr PrivateWays::Message kUp{WorkerId(1), WorkerId(0)};

// Devices 0 - 1 - 2 in a chain of 1 and 3 GB/s; 0 and 1 share an uplink, 2 has a faster one.
Topology Chain() {
  Topology topology{.devices = std::vector<TopologyDevice>(3)};
  const auto join = [&topology](int a, int b, int64_t rate) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      topology.links.push_back(
          {DeviceId(from), DeviceId(to), kByteANano * rate, Nanos(5 * rate), 1});
    }
  };
  join(0, 1, 1);
  join(1, 2, 3);
  topology.switches = {{.devices = {DeviceId(0), DeviceId(1)},
                        .to_host = kByteANano * 10,
                        .from_host = kByteANano * 9,
                        .to_host_both = kByteANano * 6,
                        .latency = Nanos(7)},
                       {.devices = {DeviceId(2)}, .latency = Nanos(8)}};
  return topology;
}

int64_t Gigabytes(int64_t rate) { return rate * kByteANano.value; }

TEST(PrivateWays, AreThoseOfTheWorkersDevices) {
  const Topology topology = Chain();
  const PrivateWays ways(topology, 2, {kDown, kUp});
  const std::vector<DeviceId> placed = {DeviceId(2), DeviceId(0)};
  const std::vector<WaySpeed> speeds = ways.SpeedsOn(placed);
  ASSERT_EQ(speeds.size(), ways.count());
  using Ways = PrivateWays;
  EXPECT_EQ(speeds[ways.OfWorker(0, Ways::kToHost)], (WaySpeed{SwapFabric::kUnlimited, Nanos(8)}));
  EXPECT_EQ(speeds[ways.OfWorker(1, Ways::kToHost)], (WaySpeed{Gigabytes(10), Nanos(7)}));
  EXPECT_EQ(speeds[ways.OfWorker(1, Ways::kFromHost)], (WaySpeed{Gigabytes(9), Nanos(7)}));
  EXPECT_EQ(speeds[ways.OfWorker(0, Ways::kParking)], (WaySpeed{Gigabytes(3), Nanos(15)}));
  EXPECT_EQ(speeds[ways.OfWorker(1, Ways::kParking)], (WaySpeed{Gigabytes(1), Nanos(5)}));
  // Devices 2 and 0 have no link: through the host, as fast as device 0's uplink.
  EXPECT_EQ(speeds[ways.Free() - 2], (WaySpeed{Gigabytes(9), Nanos(15)}));
  EXPECT_EQ(speeds[ways.Free() - 1], (WaySpeed{Gigabytes(10), Nanos(15)}));
  EXPECT_EQ(speeds[ways.Free()], WaySpeed{SwapFabric::kUnlimited});
}

TEST(PrivateWays, AreAsGoodAsTheBestFreeDevices) {
  const Topology topology = Chain();
  const PrivateWays ways(topology, 2, {kDown, kUp});
  const std::vector<DeviceId> placed = {DeviceId(0)};
  const std::vector<WaySpeed> speeds = ways.SpeedsOn(placed);
  // Worker 1 may be on device 1, with 4 GB/s to both others, or on device 2.
  EXPECT_EQ(speeds[ways.OfWorker(1, PrivateWays::kParking)], (WaySpeed{Gigabytes(4), Nanos(5)}));
  EXPECT_EQ(speeds[ways.OfWorker(1, PrivateWays::kFromHost)],
            (WaySpeed{SwapFabric::kUnlimited, Nanos(7)}));
  // Over the link of device 1, or to device 2 through the host.
  EXPECT_EQ(speeds[ways.Free() - 2], (WaySpeed{Gigabytes(10), Nanos(5)}));
}

// Worker 0 parks 60 bytes; workers 1 and 2 have room for 40 and 30.
ParkingDemand SixtyBytes() {
  return {{{.parked = Bytes(60)}, {.lendable = Bytes(40)}, {.lendable = Bytes(30)}}};
}

TEST(PrivateWays, ParkAsFastAsLendersHaveRoom) {
  const Topology topology = Chain();
  PrivateWays ways(topology, 3, {});
  ways.LendOnly(SixtyBytes());
  const auto rate_on = [&](const std::vector<DeviceId>& placed) {
    return ways.SpeedsOn(placed)[ways.OfWorker(0, PrivateWays::kParking)].rate;
  };
  // On device 1, 30 bytes at 3 GB/s in 10 ns, 30 at 1 GB/s in 30.
  EXPECT_EQ(rate_on({DeviceId(1), DeviceId(0), DeviceId(2)}), Gigabytes(2));
  // The other way round 40 in 13.3 ns, 20 in 20.
  EXPECT_EQ(rate_on({DeviceId(1), DeviceId(2), DeviceId(0)}), Gigabytes(3));
  EXPECT_EQ(rate_on({DeviceId(1)}), Gigabytes(3));
  EXPECT_EQ(rate_on({}), Gigabytes(3));
  // Too little room on device 1 alone: nothing is known but the link.
  EXPECT_EQ(rate_on({DeviceId(0)}), Gigabytes(1));
}

TEST(PrivateWays, ParkOnDevicesWithoutAWorkerAsWell) {
  Topology topology = Chain();
  for (TopologyDevice& device : topology.devices) device.memory = Bytes(45);
  PrivateWays ways(topology, 2, {});
  ways.LendOnly({{{.parked = Bytes(60)}, {.lendable = Bytes(15)}}});
  const auto rate_on = [&](const std::vector<DeviceId>& placed) {
    return ways.SpeedsOn(placed)[ways.OfWorker(0, PrivateWays::kParking)].rate;
  };
  // 45 bytes at 3 GB/s and 15 at 1 GB/s, both in 15 ns; or 15 in 5 ns, and 45 in 45.
  EXPECT_EQ(rate_on({DeviceId(1), DeviceId(0)}), Gigabytes(4));
  EXPECT_EQ(rate_on({DeviceId(1), DeviceId(2)}), Gigabytes(4) / 3 + 1);  // rounded up
  EXPECT_EQ(rate_on({DeviceId(1)}), Gigabytes(4));
  topology.copy_engines = CopyEngines::kOneForAllPeers;
  EXPECT_EQ(rate_on({DeviceId(1), DeviceId(2)}), Gigabytes(3));
}

TEST(PrivateWays, OfOneCopyEngineAreAsFastAsOneLink) {
  Topology topology = Chain();
  topology.copy_engines = CopyEngines::kOneForAllPeers;
  const PrivateWays ways(topology, 1, {});
  const std::vector<DeviceId> placed = {DeviceId(1)};
  EXPECT_EQ(ways.SpeedsOn(placed)[ways.OfWorker(0, PrivateWays::kParking)].rate, Gigabytes(3));
  topology.devices[1] = {.egress = kByteANano, .ingress = kByteANano * 2};
  const PrivateWays capped(topology, 1, {});
  EXPECT_EQ(capped.SpeedsOn(placed)[capped.OfWorker(0, PrivateWays::kParking)].rate, Gigabytes(2));
}

// 2 bytes on the slowest pair, at 1 GB/s, take as long as 8 on both of device 1's, at 4 GB/s.
TEST(PrivateWays, KnowHowMuchOfAllPassesInTheTimeOfAStripe) {
  const Topology topology = Chain();
  const PrivateWays ways(topology, 2, {});
  EXPECT_GE(ways.AllFor(Bytes(2)), Bytes(8));
  EXPECT_LE(ways.AllFor(Bytes(2)), Bytes(9));
}

TEST(PrivateWays, AreNumberedByTheirRates) {
  const Topology topology = Chain();
  const PrivateWays ways(topology, 2, {kDown});
  const Topology numbered = ways.Numbered();
  EXPECT_TRUE(CheckTopology(numbered).ok()) << CheckTopology(numbered);
  const auto way_between = [&numbered](DeviceId from, DeviceId to) {
    return PrivateWays::WayWithRate(FindLink(numbered, from, to)->rate);
  };
  EXPECT_EQ(way_between(DeviceId(0), DeviceId(1)), ways.Free() - 1);
  EXPECT_EQ(way_between(DeviceId(1), DeviceId(0)), ways.Free());
  EXPECT_EQ(way_between(DeviceId(1), ways.LenderOf(1)), ways.OfWorker(1, PrivateWays::kParking));
  EXPECT_EQ(way_between(ways.FreeLender(), DeviceId(0)), ways.Free());
  EXPECT_EQ(PrivateWays::WayWithRate(numbered.switches[1].to_host),
            ways.OfWorker(1, PrivateWays::kToHost));
  EXPECT_EQ(DriveOf(numbered, DeviceId(1)), 1);
}

}  // namespace
}  // namespace siphon
