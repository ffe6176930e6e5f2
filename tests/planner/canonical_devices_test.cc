#include "planner/canonical_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "planner/topology_symmetry.h"
#include "tests/planner/dice.h"
#include "tests/planner/shuffled_devices.h"

namespace siphon {
namespace {

using testing::ElementsAre;

void Link(Topology& topology, int a, int b, int64_t rate) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    topology.links.push_back(
        {.from = DeviceId(from), .to = DeviceId(to), .rate = BytesPerSecond(rate)});
  }
}

// A ring of six, whose links are slow and fast by turns; two devices a switch, three a NUMA node.
Topology Ring() {
  Topology topology;
  topology.devices.resize(6);
  for (int device = 0; device < 6; ++device) {
    topology.devices[device].memory = Bytes(100);
    topology.devices[device].numa = device / 3;
    Link(topology, device, (device + 1) % 6, device % 2 == 0 ? 10 : 20);
  }
  return WithHost(topology, 2, {.to_host = BytesPerSecond(3), .from_host = BytesPerSecond(4)});
}

// Meshes in which anything may differ.
Topology Mesh(int seed) {
  Dice dice(seed);
  Topology topology;
  topology.devices.resize(dice.Roll(2, 7));
  const int devices = DeviceCount(topology);
  for (int device = 0; device < devices; ++device) {
    topology.devices[device].memory = Bytes(dice.Roll(1, 2));
    topology.devices[device].numa = dice.Roll(0, 1);
    for (int to = 0; to < device; ++to) {
      if (dice.Roll(0, 2) > 0) Link(topology, device, to, dice.Roll(1, 3));
    }
  }
  return WithHost(topology, dice.Roll(1, 3), {.to_host = BytesPerSecond(3)});
}

TEST(CanonicalOrder, PutsNearDevicesTogetherLinkedOnesFirst) {
  Topology topology;
  topology.devices.resize(4);
  Link(topology, 0, 3, 20);
  Link(topology, 1, 3, 10);
  topology.switches = {{.devices = {DeviceId(3), DeviceId(1)}, .to_host = BytesPerSecond(5)},
                       {.devices = {DeviceId(0), DeviceId(2)}, .to_host = BytesPerSecond(5)}};
  // 1 and 3 are linked within their switch; of the others 0 has a link to the first of them, if
  // that is 3.
  EXPECT_THAT(CanonicalOrder(topology),
              ElementsAre(DeviceId(3), DeviceId(1), DeviceId(0), DeviceId(2)));
  topology.devices[2].memory = Bytes(9);  // the others' is not known, and comes first
  EXPECT_EQ(CanonicalOrder(topology).back(), DeviceId(2));
}

TEST(CanonicalOrder, MakesOneTopologyOfAllNumberings) {
  std::vector<Topology> servers = {
      Ring(), UniformTopology(16, BytesPerSecond(7), Nanos(1)),
      WithHost(UniformTopology(8, BytesPerSecond(7), Nanos(1)), 3, {.to_host = BytesPerSecond(2)})};
  servers.push_back(SeveralServers(servers.back(), 2, {BytesPerSecond(1), Nanos(4)}));
  for (int seed = 0; seed < 60; ++seed) servers.push_back(Mesh(seed));
  Dice dice(7);
  for (const Topology& server : servers) {
    const Topology canonical = Renumbered(server, CanonicalOrder(server));
    EXPECT_EQ(TopologySymmetry(canonical).GroupSize(), TopologySymmetry(server).GroupSize());
    for (int round = 0; round < 4; ++round) {
      const Topology shuffled = Renumbered(server, ShuffledDevices(DeviceCount(server), dice));
      EXPECT_EQ(Renumbered(shuffled, CanonicalOrder(shuffled)), canonical);
    }
    // Nothing more to do.
    const std::vector<DeviceId> again = CanonicalOrder(canonical);
    EXPECT_TRUE(std::is_sorted(again.begin(), again.end()));
  }
}

TEST(CanonicalOrder, LeavesDevicesThatShareDrivesByTheirNumbers) {
  Topology topology = Renumbered(
      Ring(), {DeviceId(5), DeviceId(3), DeviceId(4), DeviceId(0), DeviceId(1), DeviceId(2)});
  const auto is_as_it_is = [&] {
    const std::vector<DeviceId> order = CanonicalOrder(topology);
    return std::is_sorted(order.begin(), order.end());
  };
  EXPECT_FALSE(is_as_it_is());
  topology.drives = {{.numa = 0}, {.numa = 1}};  // one a node
  EXPECT_FALSE(is_as_it_is());
  topology.drives = {{.numa = 1}, {.numa = 1}};
  EXPECT_TRUE(is_as_it_is());
}

TEST(Renumbered, KeepsWhatDevicesAre) {
  Topology topology = Ring();
  topology.devices[4].memory = Bytes(7);
  topology.drives = {{.capacity = Bytes(9), .numa = 1}};
  const Topology renumbered = Renumbered(
      topology, {DeviceId(4), DeviceId(5), DeviceId(0), DeviceId(1), DeviceId(2), DeviceId(3)});
  EXPECT_EQ(renumbered.devices[0].memory, Bytes(7));
  EXPECT_EQ(FindLink(renumbered, DeviceId(0), DeviceId(1))->rate, BytesPerSecond(10));  // 4 to 5
  EXPECT_EQ(FindLink(renumbered, DeviceId(1), DeviceId(2))->rate, BytesPerSecond(20));  // 5 to 0
  EXPECT_EQ(FindLink(renumbered, DeviceId(0), DeviceId(2)), std::nullopt);
  EXPECT_EQ(renumbered.switches[0].devices, (std::vector{DeviceId(0), DeviceId(1)}));
  // The node of devices 3, 4 and 5 comes first now.
  EXPECT_EQ(renumbered.devices[0].numa, 0);
  EXPECT_EQ(renumbered.devices[2].numa, 1);
  EXPECT_EQ(renumbered.devices[5].numa, 0);
  EXPECT_EQ(renumbered.drives[0].numa, 0);
}

}  // namespace
}  // namespace siphon
