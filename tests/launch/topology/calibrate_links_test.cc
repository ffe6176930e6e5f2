#include "launch/topology/probe/calibrate_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/mapping/swap_fabric.h"
#include "tests/launch/topology/probe_fixture.h"

namespace siphon {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CalibratedLinks : public ProbeTest {};

// Three of a DGX-1's devices: 0 and 1 by one wire and behind one switch, 0 and 2 by two wires.
TEST_F(CalibratedLinks, MeasuresBoardsWithDirectLinks) {
  MadeUpServer server(3, "Tesla V100-SXM2-32GB");
  server.Link(0, 1, 24.2);
  server.Link(1, 0, 24.4);
  server.Link(0, 2, 48.3);
  server.Link(2, 0, 48.1);
  server.ShareUplink(0, 1);
  server.LimitSlot(19);
  Wire({{0, 1, 2}, {1, 0, 0}, {2, 0, 0}});
  Place(0, "0000:00:01.0/0000:01:00.0", 0, "8.0 GT/s PCIe");
  Place(1, "0000:00:01.0/0000:01:00.1", 0, "8.0 GT/s PCIe");
  Place(2, "0000:00:02.0", 1, "8.0 GT/s PCIe");
  sources_.host_memory = Bytes(int64_t{512} << 30);
  const ProbedServer probed = Run(server);
  const Topology& topology = probed.discovered.topology;
  EXPECT_EQ(topology.name, "3 x Tesla V100-SXM2-32GB, measured");
  EXPECT_EQ(topology.device_kind, "V100-32");
  EXPECT_EQ(topology.copy_engines, CopyEngines::kOnePerPeer);
  EXPECT_EQ(topology.nominal_wire_rate, BytesPerSecond(25'000'000'000));
  EXPECT_EQ(WiresBetween(topology, DeviceId(0), DeviceId(2)), 2);
  // Both directions of a pair are within 5 %.
  EXPECT_DOUBLE_EQ(RateOfLink(topology, 0, 1), RateOfLink(topology, 1, 0));
  EXPECT_NEAR(RateOfLink(topology, 0, 1), 24.4, 0.1);
  EXPECT_NEAR(RateOfLink(topology, 0, 2), 48.3, 0.1);
  EXPECT_EQ(RateOfLink(topology, 1, 2), 0);
  EXPECT_NEAR(static_cast<double>(topology.devices[0].egress.value), 72.5e9, 1e9);
  ASSERT_EQ(topology.switches.size(), 2u);
  EXPECT_THAT(topology.switches[0].devices, ElementsAre(DeviceId(0), DeviceId(1)));
  EXPECT_NEAR(static_cast<double>(topology.switches[0].to_host.value), 12e9, 2e8);
  EXPECT_NEAR(static_cast<double>(topology.switches[1].to_host.value), 12e9, 2e8);
  EXPECT_NEAR(static_cast<double>(topology.switches[1].from_host.value), 11e9, 2e8);
  EXPECT_NEAR(static_cast<double>(topology.switches[1].to_host_both.value), 9.9e9, 2e8);
  EXPECT_EQ(topology.devices[2].numa, 1);
  EXPECT_EQ(topology.host_memory, Bytes(int64_t{512} << 30));
  EXPECT_THAT(probed.discovered.notes, IsEmpty());
  EXPECT_THAT(SlowLinks(topology), IsEmpty());
}

TEST_F(CalibratedLinks, SeesThatAFabricGivesAllPeersTogetherWhatItGivesOne) {
  MadeUpServer server(4, "NVIDIA H200");
  server.LinkAll(374);
  server.LimitEach(374);
  server.Host(55, 53);
  WireToSwitches({18, 18, 17, 18});
  const ProbedServer probed = Run(server);
  const Topology& topology = probed.discovered.topology;
  EXPECT_EQ(topology.device_kind, "H200");
  EXPECT_EQ(topology.copy_engines, CopyEngines::kOneForAllPeers);
  EXPECT_EQ(WiresBetween(topology, DeviceId(1), DeviceId(3)), 17);
  EXPECT_NEAR(static_cast<double>(topology.devices[0].egress.value), 374e9, 4e9);
  EXPECT_NEAR(static_cast<double>(topology.devices[0].ingress.value), 374e9, 4e9);
  EXPECT_THAT(probed.discovered.notes,
              Contains("warning: GPU2 has 17 of 18 NVLinks to the switches up; every device is "
                       "taken to have 17"));
  EXPECT_THAT(probed.discovered.notes,
              Contains("sysfs does not show the way of GPU3 (0000:13:00.0) to the host; it is "
                       "taken to be its own"));
}

// As of a partition of the fabric, or with MIG: that pair has no link, all others have theirs.
TEST_F(CalibratedLinks, LeavesOutPairsThatAFabricDoesNotLink) {
  MadeUpServer server(3, "NVIDIA H200");
  for (const auto& [from, to] : {std::pair(0, 1), {1, 0}, {0, 2}, {2, 0}}) {
    server.Link(from, to, 374);
  }
  server.LimitEach(374);
  WireToSwitches({18, 18, 18});
  const ProbedServer probed = Run(server);
  const Topology& topology = probed.discovered.topology;
  EXPECT_EQ(topology.copy_engines, CopyEngines::kOneForAllPeers);
  EXPECT_EQ(WiresBetween(topology, DeviceId(0), DeviceId(2)), 18);
  EXPECT_NEAR(RateOfLink(topology, 0, 2), 374, 4);
  EXPECT_FALSE(FindLink(topology, DeviceId(1), DeviceId(2)).has_value());
  EXPECT_FALSE(FindLink(topology, DeviceId(2), DeviceId(1)).has_value());
  EXPECT_NEAR(static_cast<double>(topology.devices[0].egress.value), 374e9, 4e9);
  EXPECT_THAT(probed.discovered.notes,
              Contains(HasSubstr("warning: GPU1 has NVLinks to GPU2, but cannot reach it")));
}

// Boards without NVLinks: 0 and 1 behind a switch, 2 below another root port, 3 on another node.
// What NVML says of them takes no link away.
TEST_F(CalibratedLinks, MeasuresEveryPairThatReachesEachOther) {
  MadeUpServer server(4, "NVIDIA L40S");
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from != to) server.Link(from, to, from / 2 == to / 2 ? 24 + from : 18 + from);
    }
  }
  server.LimitEach(30);
  const std::string speed = "16.0 GT/s PCIe";
  Place(0, "0000:00:01.0/0000:01:00.0/0000:02:00.0", 0, speed);
  Place(1, "0000:00:01.0/0000:01:00.0/0000:02:01.0", 0, speed);
  Place(2, "0000:00:02.0", 0, speed);
  Place(3, "0000:80:01.0", 1, speed, "pci0000:80");
  Wire(std::vector(4, std::vector(4, 0)));
  sources_.cache = (directory_ / "cache").string();
  const ProbedServer probed = Run(server);
  const Topology& topology = probed.discovered.topology;
  EXPECT_EQ(topology.links.size(), 12u);
  for (const TopologyLink& link : topology.links) EXPECT_EQ(link.wires, 0);
  EXPECT_NEAR(RateOfLink(topology, 0, 3), 18, 0.2);
  EXPECT_NEAR(RateOfLink(topology, 3, 0), 21, 0.2);
  EXPECT_NEAR(RateOfLink(topology, 3, 2), 27, 0.3);
  EXPECT_NEAR(static_cast<double>(topology.devices[0].egress.value), 30e9, 3e8);
  using enum PciePath;
  const PciePaths paths = {{kUnknown, kPix, kPhb, kSys},
                           {kPix, kUnknown, kPhb, kSys},
                           {kPhb, kPhb, kUnknown, kSys},
                           {kSys, kSys, kSys, kUnknown}};
  EXPECT_EQ(probed.discovered.pcie_paths, paths);
  EXPECT_EQ(Run(server).discovered.pcie_paths, paths) << "of what was kept";

  sources_.nvml = []() -> absl::StatusOr<NvmlServer> { return absl::NotFoundError("no NVML"); };
  EXPECT_EQ(Run(server).discovered.topology, topology);
}

// The host has 12 GB/s for each switch: 6 are left for devices that share one.
TEST_F(CalibratedLinks, MeasuresPairsThatLendOnlyWhereTheHostLeavesLess) {
  MadeUpServer server(3, "NVIDIA L40S");
  server.LinkAll(9);
  server.ShareUplink(0, 1);
  Wire(std::vector(3, std::vector(3, 0)));
  Place(0, "0000:00:01.0/0000:01:00.0/0000:02:00.0", 0, "");
  Place(1, "0000:00:01.0/0000:01:00.0/0000:02:01.0", 0, "");
  Place(2, "0000:00:02.0", 0, "");
  const SwapFabric fabric = MakeSwapFabric(Run(server).discovered.topology);
  EXPECT_NEAR(static_cast<double>(fabric.rate[0][2]), 9e9, 1e8);
  EXPECT_EQ(fabric.rate[2][0], 0);
}

// As with an IOMMU in the way. A pair with wires is relied on, and one that hangs keeps its
// devices.
TEST_F(CalibratedLinks, LeavesOutPairsWithoutWiresWhoseCopiesFail) {
  MadeUpServer server(3, "Tesla V100-SXM2-32GB");
  server.LinkAll(24);
  Wire({{0, 1, 0}, {1, 0, 0}, {0, 0, 0}});
  server.Break(0, 2, absl::InternalError("other bytes arrived"));
  const ProbedServer probed = Run(server);
  EXPECT_EQ(probed.discovered.topology.links.size(), 5u);
  EXPECT_FALSE(FindLink(probed.discovered.topology, DeviceId(0), DeviceId(2)).has_value());
  EXPECT_THAT(probed.discovered.notes,
              Contains("warning: GPU0 to GPU2 is taken to have no link: other bytes arrived"));
  server.Break(0, 2, absl::DeadlineExceededError("not through after a minute"));
  EXPECT_EQ(ProbeServer(sources_).status().message(), "not through after a minute");
  server.Break(0, 2, absl::InternalError("other bytes arrived"));
  server.Break(0, 1, absl::InternalError("an error of a wire"));
  EXPECT_EQ(ProbeServer(sources_).status().message(), "an error of a wire");
}

// Ten boards, five behind each switch: of nine peers that a device reaches it can have eight.
TEST_F(CalibratedLinks, HasTheNearestPeersWhereThereAreTooMany) {
  MadeUpServer server(10, "NVIDIA L40S");
  server.LinkAll(20);
  for (int from = 0; from < 10; ++from) {
    const std::string root =
        from % 2 == 0 ? "0000:00:01.0/0000:01:00.0" : "0000:00:02.0/0000:02:00.0";
    Place(static_cast<size_t>(from), absl::StrCat(root, "/0000:03:0", from, ".0"), 0, "");
  }
  server.LimitPeers(8);
  Wire(std::vector(10, std::vector(10, 0)));
  const ProbedServer probed = Run(server);
  for (int from = 0; from < 10; ++from) {
    for (int to = from % 2; to < 10; to += 2) {
      if (from == to) continue;
      EXPECT_NE(RateOfLink(probed.discovered.topology, from, to), 0) << from << " to " << to;
    }
  }
  EXPECT_NE(RateOfLink(probed.discovered.topology, 0, 7), 0);
  EXPECT_EQ(RateOfLink(probed.discovered.topology, 0, 9), 0);
  EXPECT_THAT(probed.discovered.notes,
              Contains("warning: GPU0 to GPU9 is taken to have no link: too many peers"));
}

// What a device has that is left out of the fabric is no matter of the others.
TEST_F(CalibratedLinks, KnowsDevicesWithoutWiresFromThoseOfTheFabric) {
  MadeUpServer server(4, "NVIDIA H200");
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from != to) server.Link(from, to, from == 3 || to == 3 ? 37 : 374);
    }
  }
  server.LimitEach(374);
  WireToSwitches({18, 18, 18, 0});
  const ProbedServer probed = Run(server);
  const Topology& topology = probed.discovered.topology;
  EXPECT_EQ(topology.copy_engines, CopyEngines::kOneForAllPeers);
  EXPECT_NEAR(RateOfLink(topology, 0, 1), 374, 4);
  EXPECT_EQ(WiresBetween(topology, DeviceId(0), DeviceId(3)), 0);
  EXPECT_NEAR(RateOfLink(topology, 0, 3), 37, 0.4);
  EXPECT_NEAR(RateOfLink(topology, 3, 0), 37, 0.4);
  EXPECT_LT(FindLink(topology, DeviceId(0), DeviceId(1))->latency,
            FindLink(topology, DeviceId(0), DeviceId(3))->latency);
  // Device 3 sends 111 GB/s at once, which is no limit of wires.
  EXPECT_NEAR(static_cast<double>(topology.devices[0].egress.value), 374e9, 4e9);
  EXPECT_THAT(probed.discovered.notes,
              Contains("warning: GPU3 has 0 of 18 NVLinks to the switches up"));
}

// One wire of a pair is bad, and a card sits in a slot that gives less than it should.
TEST_F(CalibratedLinks, WarnsOfWhatIsBelowSixtyPercent) {
  MadeUpServer server(2, "Tesla V100-SXM2-16GB");
  server.Link(0, 1, 14.9);
  server.Link(1, 0, 24.2);
  server.Host(6, 12);
  Wire({{0, 1}, {1, 0}});
  Place(0, "0000:00:01.0", 0, "8.0 GT/s PCIe");
  Place(1, "0000:00:02.0", 0, "8.0 GT/s PCIe");
  const ProbedServer probed = Run(server);
  const std::vector<TopologyLink> slow = SlowLinks(probed.discovered.topology);
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].from, DeviceId(0));
  EXPECT_THAT(probed.discovered.notes,
              Contains(HasSubstr("warning: GPU1 to the host: 6.00 GB/s is below 60 % of the 15.8 "
                                 "GB/s of PCIe 3, x16")));
}

TEST(EvenOut, TakesOnlyNoiseAway) {
  std::vector<BytesPerSecond> rates = {
      BytesPerSecond(24'212'345'678), BytesPerSecond(24'387'000'000),
      BytesPerSecond(24'300'000'001), BytesPerSecond(15'000'000'000)};
  std::vector<BytesPerSecond*> pointers;
  for (BytesPerSecond& rate : rates) pointers.push_back(&rate);
  EvenOut(pointers);
  EXPECT_THAT(rates, ElementsAre(BytesPerSecond(24'300'000'000), BytesPerSecond(24'300'000'000),
                                 BytesPerSecond(24'300'000'000), BytesPerSecond(15'000'000'000)));
}

}  // namespace
}  // namespace siphon
