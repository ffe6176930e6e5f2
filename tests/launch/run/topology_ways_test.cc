#include "launch/run/parking/topology_ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "launch/topology/topology_file.h"

namespace siphon {
namespace {

constexpr BytesPerSecond kFast{20};
constexpr BytesPerSecond kSlow{5};

// Devices 0 and 1 behind one switch, 2 behind another; a link between 0 and 2 alone, both ways.
Topology ThreeDevices() {
  Topology topology;
  topology.devices.resize(3);
  topology.devices[0].egress = BytesPerSecond(30);
  topology.devices[2].ingress = BytesPerSecond(25);
  topology.links = {{.from = DeviceId(0), .to = DeviceId(2), .rate = kFast, .latency = Nanos(3)},
                    {.from = DeviceId(2), .to = DeviceId(0), .rate = kFast, .latency = Nanos(4)}};
  topology.switches = {
      {.devices = {DeviceId(0), DeviceId(1)},
       .to_host = BytesPerSecond(12),
       .from_host = BytesPerSecond(11),
       .to_host_both = BytesPerSecond(9),
       .from_host_both = BytesPerSecond(8),
       .latency = Nanos(7)},
      {.devices = {DeviceId(2)}, .to_host = kSlow, .from_host = kSlow, .latency = Nanos(9)}};
  return topology;
}

std::vector<SharedWay> Over(const TopologyWays& ways, const std::optional<LinkRoute>& route) {
  std::vector<SharedWay> over;
  if (!route.has_value()) return over;
  for (const SharedWayId way : route->over) over.push_back(ways.ways()[way.value]);
  return over;
}

TEST(TopologyWays, OfALinkAreItsWiresAndBothEnds) {
  const TopologyWays ways(ThreeDevices());
  const auto route = ways.Between(DeviceId(0), DeviceId(2));
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->speed, (CopyLinkRate{kFast, Nanos(3)}));
  EXPECT_EQ(Over(ways, route),
            (std::vector<SharedWay>{{kFast}, {BytesPerSecond(30)}, {BytesPerSecond(25)}}));
  // The other direction has other wires and other ends.
  const auto back = ways.Between(DeviceId(2), DeviceId(0));
  EXPECT_EQ(back->speed.latency, Nanos(4));
  for (const SharedWayId way : back->over) {
    EXPECT_EQ(std::count(route->over.begin(), route->over.end(), way), 0);
  }
}

TEST(TopologyWays, ToTheHostIsTheUplinkOfAllDevicesOfTheSwitch) {
  const TopologyWays ways(ThreeDevices());
  EXPECT_EQ(ways.ToHost(DeviceId(0)), ways.ToHost(DeviceId(1)));
  EXPECT_NE(ways.ToHost(DeviceId(0)), ways.ToHost(DeviceId(2)));
  EXPECT_EQ(ways.DevicesAtUplink(DeviceId(1)), 2);
  const SharedWayId up = ways.ToHost(DeviceId(0))->over[0];
  const SharedWayId down = ways.FromHost(DeviceId(0))->over[0];
  EXPECT_EQ(ways.ways()[up.value], (SharedWay{BytesPerSecond(12), BytesPerSecond(9), down.value}));
  EXPECT_EQ(ways.ways()[down.value], (SharedWay{BytesPerSecond(11), BytesPerSecond(8), up.value}));
}

TEST(TopologyWays, WithoutALinkGoThroughTheHost) {
  Topology topology = ThreeDevices();
  const TopologyWays ways(topology);
  const auto route = ways.Between(DeviceId(1), DeviceId(2));
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->speed, (CopyLinkRate{kSlow, Nanos(16)}));
  EXPECT_EQ(route->over, (std::vector<SharedWayId>{ways.ToHost(DeviceId(1))->over[0],
                                                   ways.FromHost(DeviceId(2))->over[0]}));
  topology.switches.pop_back();
  EXPECT_FALSE(TopologyWays(topology).Between(DeviceId(1), DeviceId(2)).has_value());
  EXPECT_FALSE(TopologyWays(topology).ToHost(DeviceId(2)).has_value());
  EXPECT_EQ(TopologyWays(topology).DevicesAtUplink(DeviceId(2)), 0);
}

TEST(TopologyWays, ParkingTakesTheOwnersCopyEngineBothWays) {
  Topology topology = ThreeDevices();
  for (const CopyEngines engines : {CopyEngines::kOnePerPeer, CopyEngines::kOneForAllPeers}) {
    topology.copy_engines = engines;
    const TopologyWays ways(topology);
    const SharedWayId out = ways.ToLender(DeviceId(0), DeviceId(2))->over.back();
    EXPECT_EQ(ways.FromLender(DeviceId(0), DeviceId(2))->over.back(), out);
    EXPECT_EQ(ways.ways()[out.value].rate, kFast);
    EXPECT_NE(ways.ToLender(DeviceId(2), DeviceId(0))->over.back(), out);
    const bool shared = ways.ToLender(DeviceId(0), DeviceId(1))->over.back() == out;
    EXPECT_EQ(shared, engines == CopyEngines::kOneForAllPeers);
    EXPECT_EQ(ways.PeersAtEngine(3), shared ? 3 : 1);
  }
}

// Of all servers that are known: every route is at least as fast as what it shares, alone.
TEST(TopologyWays, LetOneAloneGoAsFastAsItsLink) {
  for (const TopologyPreset& preset : TopologyPresets()) {
    SCOPED_TRACE(preset.name);
    const auto topology = FindTopologyPreset(preset.name);
    ASSERT_TRUE(topology.ok()) << topology.status();
    const TopologyWays ways(*topology);
    for (int from = 0; from < DeviceCount(*topology); ++from) {
      for (int to = 0; to < DeviceCount(*topology); ++to) {
        if (from == to) continue;
        const auto route = ways.ToLender(DeviceId(from), DeviceId(to));
        if (!route.has_value()) continue;
        std::vector<int64_t> memory(ways.ways().size() * 8);
        const SharedWays taken(ways.ways(),
                               absl::MakeSpan(reinterpret_cast<std::byte*>(memory.data()),
                                              memory.size() * sizeof(int64_t)));
        const Bytes bytes(1'000'000);
        EXPECT_LE(taken.Book(route->over, bytes, Nanos(0)),
                  MovingTime(bytes, route->speed.rate) + Nanos(1));
      }
    }
  }
}

}  // namespace
}  // namespace siphon
