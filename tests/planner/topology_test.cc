#include "planner/topology.h"

#include <gtest/gtest.h>

#include <string>

namespace siphon {
namespace {

constexpr BytesPerSecond kRate(25'000'000'000);

TEST(Topology, UniformLinksJoinEveryTwoDevicesBothWays) {
  const Topology topology = UniformTopology(3, kRate, Nanos(1800));
  EXPECT_EQ(DeviceCount(topology), 3);
  EXPECT_EQ(topology.links.size(), 6);
  ASSERT_TRUE(FindLink(topology, DeviceId(2), DeviceId(0)).has_value());
  EXPECT_EQ(FindLink(topology, DeviceId(2), DeviceId(0))->latency, Nanos(1800));
  EXPECT_FALSE(FindLink(topology, DeviceId(1), DeviceId(1)).has_value());
  EXPECT_FALSE(SwitchOf(topology, DeviceId(0)).has_value());
  EXPECT_TRUE(CheckTopology(topology).ok());
}

TEST(Topology, NvswitchCapsWhatADeviceSendsToAllTogether) {
  const Topology topology = NvswitchTopology(8, kRate, Nanos(0));
  EXPECT_EQ(topology.devices[5].egress, kRate);
  EXPECT_EQ(topology.copy_engines, CopyEngines::kOneForAllPeers);
}

TEST(Topology, NeighboursShareASwitchAndTheLastMayBeAlone) {
  const Topology topology =
      WithHost(UniformTopology(5, kRate, Nanos(0)), 2, {.to_host = BytesPerSecond(12)});
  ASSERT_EQ(topology.switches.size(), 3);
  EXPECT_EQ(topology.switches[2].devices, std::vector<DeviceId>{DeviceId(4)});
  EXPECT_EQ(topology.switches[2].to_host, BytesPerSecond(12));
  EXPECT_EQ(SwitchOf(topology, DeviceId(3)), 1);
  EXPECT_TRUE(CheckTopology(topology).ok());
}

TEST(Topology, DevicesTakeTheDrivesOfTheirNodeInTurn) {
  Topology topology = UniformTopology(5, kRate, Nanos(0));
  topology.devices[3].numa = topology.devices[4].numa = 1;
  topology.drives.resize(3);
  const auto drives = [&] {
    std::string text;
    for (int device = 0; device < 5; ++device) text += '0' + DriveOf(topology, DeviceId(device));
    return text;
  };
  EXPECT_EQ(drives(), "01201");  // node 1 has none
  topology.drives[1].numa = 1;
  EXPECT_EQ(drives(), "02011");
}

TEST(Topology, TellsWiresAndWhereDevicesMeet) {
  Topology topology = WithHost(UniformTopology(4, kRate, Nanos(0)), 2, {});
  topology.devices[3].numa = 1;
  topology.links[0].wires = 2;  // 0 to 1
  EXPECT_EQ(WiresBetween(topology, DeviceId(0), DeviceId(1)), 2);
  EXPECT_EQ(WiresBetween(topology, DeviceId(1), DeviceId(0)), 0);
  EXPECT_EQ(WiresBetween(topology, DeviceId(1), DeviceId(1)), 0);
  EXPECT_EQ(PcieDistanceBetween(topology, DeviceId(2), DeviceId(3)), PcieDistance::kSameSwitch);
  EXPECT_EQ(PcieDistanceBetween(topology, DeviceId(0), DeviceId(2)), PcieDistance::kSameNuma);
  EXPECT_EQ(PcieDistanceBetween(topology, DeviceId(0), DeviceId(3)), PcieDistance::kOtherNuma);
  topology.switches.clear();
  EXPECT_EQ(PcieDistanceBetween(topology, DeviceId(0), DeviceId(1)), PcieDistance::kSameNuma);
}

TEST(Topology, FindsLinksThatGiveLessThanTheirWiresPromise) {
  Topology topology = UniformTopology(2, BytesPerSecond(29'999'999'999), Nanos(0));
  topology.links[0].wires = 2;
  topology.links[1].wires = 2;
  topology.links[1].rate = BytesPerSecond(30'000'000'000);
  EXPECT_TRUE(SlowLinks(topology).empty());  // what wires should give is not known
  topology.nominal_wire_rate = BytesPerSecond(25'000'000'000);
  EXPECT_EQ(SlowLinks(topology), std::vector<TopologyLink>{topology.links[0]});
}

std::string Problem(const Topology& topology) {
  const absl::Status status = CheckTopology(topology);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Topology, SeveralServersAreOneSeveralTimesWithoutLinksBetween) {
  Topology server = WithHost(UniformTopology(3, kRate, Nanos(9)), 2, {.to_host = kRate});
  server.name = "small";
  server.devices[2].numa = 1;
  server.drives.push_back({.capacity = Bytes(7), .numa = 1});
  EXPECT_EQ(ServerCount(server), 1);
  EXPECT_EQ(HostName(server, 0), "the host");
  EXPECT_EQ(SeveralServers(server, 1, {kRate}), server);
  const Topology two = SeveralServers(server, 2, {kRate, Nanos(5)});
  EXPECT_TRUE(CheckTopology(two).ok()) << CheckTopology(two);
  EXPECT_EQ(two.name, "2 x small");
  EXPECT_EQ(two.network, (ServerNetwork{kRate, Nanos(5)}));
  EXPECT_EQ(DeviceCount(two), 6);
  EXPECT_EQ(ServerCount(two), 2);
  EXPECT_EQ(HostName(two, 1), "the host of server 1");
  EXPECT_EQ(ServerOf(two, DeviceId(2)), 0);
  EXPECT_EQ(ServerOf(two, DeviceId(3)), 1);
  EXPECT_EQ(IndexInServer(two, DeviceId(2)), 2);
  EXPECT_EQ(IndexInServer(two, DeviceId(4)), 1);
  EXPECT_EQ(IndexInServer(Topology(), DeviceId(4)), 4);  // workers without devices of their own
  EXPECT_EQ(two.links.size(), 12);
  EXPECT_TRUE(FindLink(two, DeviceId(3), DeviceId(5)).has_value());
  EXPECT_FALSE(FindLink(two, DeviceId(2), DeviceId(3)).has_value());
  EXPECT_EQ(SwitchOf(two, DeviceId(4)), 2);
  EXPECT_EQ(two.devices[3].numa, 2);
  EXPECT_EQ(two.devices[5].numa, 3);
  EXPECT_EQ(DriveOf(two, DeviceId(0)), 0);  // there is no other in its server
  EXPECT_EQ(DriveOf(two, DeviceId(2)), 0);
  EXPECT_EQ(DriveOf(two, DeviceId(3)), 1);
  EXPECT_EQ(DriveOf(two, DeviceId(5)), 1);
}

TEST(Topology, SaysWhatIsWrongBetweenServers) {
  const Topology server = WithHost(UniformTopology(2, kRate, Nanos(0)), 2, {});
  const Topology two = SeveralServers(server, 2, {});
  Topology wrong = two;
  wrong.links.push_back({.from = DeviceId(1), .to = DeviceId(2)});
  EXPECT_EQ(Problem(wrong),
            "the link from device 1 to device 2 joins two servers, between which there is only a "
            "network");
  wrong = two;
  wrong.switches.pop_back();
  wrong.switches[0].devices.push_back(DeviceId(2));
  EXPECT_EQ(Problem(wrong), "switch 0 has devices of two servers");
  wrong = two;
  wrong.links.clear();
  wrong.switches.clear();
  wrong.devices[1].server = 2;
  EXPECT_EQ(Problem(wrong), "a device is of server 2 before one of server 1");
  wrong = two;
  wrong.drives.push_back({.server = 2});
  EXPECT_EQ(Problem(wrong), "a drive is of server 2, which has no devices");
  wrong.drives[0].server = 1;
  EXPECT_EQ(Problem(wrong), "a server has no drive, and another has one");
  wrong = two;
  wrong.network.rate = BytesPerSecond(-1);
  EXPECT_EQ(Problem(wrong), "the rate of the network between servers is -1; 0 is the least");
}

TEST(Topology, SaysWhatIsWrong) {
  Topology topology = UniformTopology(2, kRate, Nanos(0));
  topology.links.push_back({.from = DeviceId(1), .to = DeviceId(0), .rate = kRate});
  EXPECT_EQ(
      Problem(topology),
      "the link from device 1 to device 0 is given twice; one entry has the rate of all wires "
      "together");
  topology.links.back().to = DeviceId(2);
  EXPECT_EQ(Problem(topology),
            "the link from device 1 to device 2 names device 2, but devices are 0 to 1");
  topology.links.back().to = DeviceId(1);
  EXPECT_EQ(Problem(topology), "the link from device 1 to device 1 leads nowhere");
  topology.links.pop_back();
  topology.links[0].rate = BytesPerSecond(-1);
  EXPECT_EQ(Problem(topology),
            "the rate of the link from device 0 to device 1 is -1; 0 is the least");
  topology.links[0] = {.from = DeviceId(0), .to = DeviceId(1), .wires = -2};
  EXPECT_EQ(Problem(topology),
            "the number of wires of the link from device 0 to device 1 is -2; 0 is the least");
  topology = WithHost(UniformTopology(2, kRate, Nanos(0)), 1, {});
  topology.switches[1].devices.push_back(DeviceId(0));
  EXPECT_EQ(Problem(topology), "device 0 is behind switch 0 and behind switch 1");
}

}  // namespace
}  // namespace siphon
