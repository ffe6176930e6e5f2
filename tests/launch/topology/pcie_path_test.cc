#include "launch/topology/pcie_path.h"

#include <gtest/gtest.h>

#include "launch/topology/topology_keys.h"

namespace siphon {
namespace {

using enum PciePath;

// A device below a switch with the upstream port 0000:3b:00.0.
PciePlace Behind(const std::vector<std::string>& below_switch) {
  PciePlace place{.host_bridge = "pci0000:3a", .bridges = {"0000:3a:00.0", "0000:3b:00.0"}};
  place.bridges.insert(place.bridges.end(), below_switch.begin(), below_switch.end());
  return place;
}

TEST(PciePath, IsByTheBridgesThatDevicesShare) {
  const PciePlace one = Behind({"0000:3c:08.0"});
  const PciePlace other = Behind({"0000:3c:0c.0"});
  EXPECT_EQ(PciePathBetween(one, other), kPix);
  // Two functions of one card.
  EXPECT_EQ(PciePathBetween(one, one), kPix);
  // Behind a second switch below the first one.
  const PciePlace further = Behind({"0000:3c:10.0", "0000:40:00.0", "0000:41:00.0"});
  EXPECT_EQ(PciePathBetween(one, further), kPxb);
  EXPECT_EQ(PciePathBetween(further, one), kPxb);
  const PciePlace beside = Behind({"0000:3c:10.0", "0000:40:00.0", "0000:41:04.0"});
  EXPECT_EQ(PciePathBetween(further, beside), kPix);
}

TEST(PciePath, GoesOverHostBridgesBetweenRootPorts) {
  const PciePlace one = {.host_bridge = "pci0000:3a", .bridges = {"0000:3a:00.0"}, .numa = 0};
  const PciePlace port = {.host_bridge = "pci0000:3a", .bridges = {"0000:3a:02.0"}, .numa = 0};
  const PciePlace root = {.host_bridge = "pci0000:5d", .bridges = {"0000:5d:00.0"}, .numa = 0};
  const PciePlace node = {.host_bridge = "pci0000:ae", .bridges = {"0000:ae:00.0"}, .numa = 1};
  EXPECT_EQ(PciePathBetween(one, port), kPhb);
  EXPECT_EQ(PciePathBetween(one, root), kNode);
  EXPECT_EQ(PciePathBetween(one, node), kSys);
}

TEST(PciePath, IsNotKnownWhereSysfsDoesNotShowIt) {
  const PciePlace one = {.host_bridge = "pci0000:3a", .bridges = {"0000:3a:00.0"}};
  const PciePlace root = {.host_bridge = "pci0000:5d", .bridges = {"0000:5d:00.0"}, .numa = 0};
  EXPECT_EQ(PciePathBetween(one, root), kUnknown) << "node of the first";
  // As in a virtual machine.
  const PciePlace hidden = {.host_bridge = "pci0000:00", .numa = 0};
  EXPECT_EQ(PciePathBetween(hidden, hidden), kUnknown) << "bridges";
  EXPECT_EQ(PciePathBetween(PciePlace(), root), kUnknown);
  EXPECT_EQ(PciePathBetween(hidden, {.numa = 1}), kSys) << "nodes are shown";
}

TEST(PciePathsOf, AreWhatSwitchesAndNodesTell) {
  TopologyKeys keys{
      .devices = 4,
      .switches = {{.devices = {DeviceId(0), DeviceId(1)}}, {.devices = {DeviceId(2)}}}};
  EXPECT_EQ(PciePathsOf(keys), PciePaths({{kUnknown, kPix, kUnknown, kUnknown},
                                          {kPix, kUnknown, kUnknown, kUnknown},
                                          {kUnknown, kUnknown, kUnknown, kUnknown},
                                          {kUnknown, kUnknown, kUnknown, kUnknown}}));
  keys.numa = {0, 0, 0, 1};
  EXPECT_EQ(PciePathsOf(keys), PciePaths({{kUnknown, kPix, kNode, kSys},
                                          {kPix, kUnknown, kNode, kSys},
                                          {kNode, kNode, kUnknown, kSys},
                                          {kSys, kSys, kSys, kUnknown}}));
  // On one node, with a way to the host that is not told.
  keys.numa = {0, 0, 0, 0};
  EXPECT_EQ(PciePathsOf(keys)[3][0], kUnknown);
  keys.pcie_paths = PciePaths(4, std::vector<PciePath>(4, kPhb));
  EXPECT_EQ(PciePathsOf(keys), keys.pcie_paths);
}

TEST(PciePath, HasTheWordsOfNvidiaSmi) {
  for (const char* const word : {"PIX", "PXB", "PHB", "NODE", "SYS"}) {
    EXPECT_EQ(PciePathName(FindPciePath(word).value()), word);
  }
  EXPECT_EQ(FindPciePath("SOC"), kSys);
  EXPECT_EQ(FindPciePath("NV2"), std::nullopt);
  EXPECT_EQ(FindPciePath("?"), std::nullopt);
  EXPECT_EQ(PciePathName(kUnknown), "?");
}

}  // namespace
}  // namespace siphon
