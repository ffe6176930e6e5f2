// Every preset that we ship is one, and is what was published about its server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launch/topology/topology_file.h"
#include "planner/canonical_devices.h"
#include "planner/performance/device_spec.h"
#include "planner/topology_symmetry.h"

namespace siphon {
namespace {

constexpr int64_t kGiga = 1'000'000'000;

Topology Preset(absl::string_view name) {
  auto topology = FindTopologyPreset(name);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return topology.value_or(Topology());
}

int64_t DistinctMaps(absl::string_view name) {
  return static_cast<int64_t>(TopologySymmetry(Preset(name)).DistinctMaps().value_or(0));
}

TEST(TopologyPresets, AreTheFilesInConfigs) {
  // CTest starts us in the project's root.
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("configs/topologies")) {
    files.insert(entry.path().stem());
    const auto from_file = LoadTopology(entry.path());
    ASSERT_TRUE(from_file.ok()) << from_file.status();
    EXPECT_EQ(*from_file, Preset(entry.path().stem().string()));
  }
  EXPECT_EQ(files.size(), TopologyPresets().size());
  EXPECT_GE(files.size(), 15);
}

TEST(TopologyPresets, SayWhereTheyComeFromAndAreSound) {
  for (const TopologyPreset& preset : TopologyPresets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_EQ(preset.text.substr(0, 10), "# Source: ");
    const Topology topology = Preset(preset.name);
    EXPECT_TRUE(CheckTopology(topology).ok());
    EXPECT_THAT(SlowLinks(topology), testing::IsEmpty());
    EXPECT_TRUE(TopologySymmetry(topology).exact());
    // As plans are made, so that stages have the numbers that are tried first; but for the server
    // whose single links were measured.
    const bool in_order = absl::c_is_sorted(CanonicalOrder(topology));
    EXPECT_EQ(in_order, preset.name != "v100x4_th2k");
    // Every device reaches the host.
    for (int device = 0; device < DeviceCount(topology); ++device) {
      EXPECT_TRUE(SwitchOf(topology, DeviceId(device)).has_value()) << device;
    }
    for (const TopologyLink& link : topology.links) {
      const BytesPerSecond egress = topology.devices[link.from.value].egress;
      EXPECT_TRUE(egress.value == 0 || link.rate <= egress);
      EXPECT_TRUE(link.wires == 0 || link.rate <= topology.nominal_wire_rate * link.wires);
    }
  }
}

// Links that are not NVLink pass a device's one PCIe port, which has as many lanes as its uplink.
TEST(TopologyPresets, HaveNoMorePcieLinksThanAPortCarries) {
  int with_pcie_links = 0;
  for (const TopologyPreset& preset : TopologyPresets()) {
    SCOPED_TRACE(preset.name);
    const Topology topology = Preset(preset.name);
    std::vector<BytesPerSecond> out(topology.devices.size());
    std::vector<BytesPerSecond> in(topology.devices.size());
    for (const TopologyLink& link : topology.links) {
      if (link.wires > 0) continue;
      out[link.from.value] += link.rate;
      in[link.to.value] += link.rate;
    }
    for (int device = 0; device < DeviceCount(topology); ++device) {
      const PcieSwitch& uplink =
          topology.switches[SwitchOf(topology, DeviceId(device)).value_or(0)];
      const BytesPerSecond port = std::max(uplink.to_host, uplink.from_host);
      const auto carries = [&](BytesPerSecond links, BytesPerSecond cap) {
        return (cap.value > 0 ? std::min(links, cap) : links) <= port;
      };
      EXPECT_TRUE(carries(out[device], topology.devices[device].egress)) << device;
      EXPECT_TRUE(carries(in[device], topology.devices[device].ingress)) << device;
      with_pcie_links += out[device].value > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(with_pcie_links, 4);  // of gtx1080ti_x4
}

TEST(TopologyPresets, NameDevicesWhoseSpeedIsKnown) {
  for (const TopologyPreset& preset : TopologyPresets()) {
    EXPECT_TRUE(FindDeviceSpec(Preset(preset.name).device_kind).ok()) << preset.name;
  }
}

TEST(TopologyPresets, Dgx1HasTenThousandAndEightyMapsAndTheKnownCountsOfWires) {
  EXPECT_EQ(DistinctMaps("dgx1_v100"), 10'080);
  const Topology dgx1 = Preset("dgx1_v100");
  const auto early_to_late = [&](const std::vector<int>& map) {
    int wires = 0;
    for (int early = 0; early < 4; ++early) {
      for (int late = 4; late < 8; ++late) {
        wires += WiresBetween(dgx1, DeviceId(map[early]), DeviceId(map[late]));
      }
    }
    return wires;
  };
  EXPECT_EQ(early_to_late({0, 1, 2, 3, 4, 5, 6, 7}), 6);
  EXPECT_EQ(early_to_late({0, 1, 5, 7, 3, 2, 6, 4}), 16);
  EXPECT_EQ(early_to_late({7, 6, 2, 3, 0, 1, 5, 4}), 12);
  for (int device = 0; device < 8; ++device) {
    int wires = 0;
    for (int peer = 0; peer < 8; ++peer) {
      wires += WiresBetween(dgx1, DeviceId(device), DeviceId(peer));
    }
    EXPECT_EQ(wires, 6) << "device " << device;
  }
}

TEST(TopologyPresets, OfFabricsDifferInSwitchesOnly) {
  EXPECT_EQ(DistinctMaps("dgx_h100"), 35);   // 8! / (2 4! 4!): which four on which socket
  EXPECT_EQ(DistinctMaps("dgx_a100"), 630);  // 8! / (2^4 2! 2!): its drive is on one socket
  const Topology dgx2 = Preset("dgx2_v100");
  EXPECT_EQ(TopologySymmetry(dgx2).GroupSize(), 294'912);
  EXPECT_EQ(TopologySymmetry(dgx2, SymmetryScope::kDevicesAndLinks).DistinctMaps(), 1);
  EXPECT_EQ(DistinctMaps("grace_hopper"), 1);
  EXPECT_EQ(DistinctMaps("gtx1080ti_x4"), 1);
  EXPECT_EQ(DistinctMaps("v100x4_nv2"), 1);
}

TEST(TopologyPresets, KeepWhatWasMeasuredOneWay) {
  const Topology th2k = Preset("v100x4_th2k");
  EXPECT_EQ(FindLink(th2k, DeviceId(2), DeviceId(3))->rate.value, 383 * kGiga / 10);
  EXPECT_EQ(FindLink(th2k, DeviceId(3), DeviceId(2))->rate.value, 4834 * kGiga / 100);
  EXPECT_EQ(WiresBetween(th2k, DeviceId(2), DeviceId(3)), 2);
  EXPECT_FALSE(FindLink(th2k, DeviceId(0), DeviceId(3)).has_value());
  EXPECT_EQ(DistinctMaps("v100x4_th2k"), 24);  // one slow direction leaves no symmetry
}

TEST(TopologyPresets, HaveTheHostsOfThePapers) {
  EXPECT_EQ(Preset("aws_p3dn_24xlarge").host_memory.value, 768 * kGiga);
  const Topology a100 = Preset("dgx_a100");
  EXPECT_EQ(a100.host_memory.value, 948 * kGiga);
  ASSERT_EQ(a100.drives.size(), 1);
  EXPECT_EQ(a100.drives[0].capacity.value, 6000 * kGiga);
  const Topology grace = Preset("grace_hopper");
  EXPECT_EQ(grace.devices[0].memory.value, 96 * kGiga);
  EXPECT_EQ(grace.host_memory.value, 8 * 512 * kGiga);
  EXPECT_EQ(grace.drives[7].read.value, 64 * kGiga);
  const Topology harmony = Preset("gtx1080ti_x4");
  EXPECT_EQ(harmony.switches.size(), 1);
  EXPECT_EQ(WiresBetween(harmony, DeviceId(0), DeviceId(1)), 0);
}

// What no source tells is marked where `siphon topology` shows it.
TEST(TopologyPresets, HaveAHostWhoseMemoryIsKnownOrAssumed) {
  const std::set<std::string> assumed = {"dgx1_v100_nvme", "gtx1080ti_x4", "hgx_a800",   "hgx_b300",
                                         "hgx_h200",       "v100x4_nv2",   "v100x4_th2k"};
  for (const TopologyPreset& preset : TopologyPresets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_GT(Preset(preset.name).host_memory, Bytes(0));
    const bool says = absl::c_any_of(TopologyRemarks(preset.text), [](const std::string& remark) {
      const std::string lower = absl::AsciiStrToLower(remark);
      return absl::StrContains(remark, "ASSUMED") && absl::StrContains(lower, "host memory");
    });
    EXPECT_EQ(says, assumed.contains(std::string(preset.name)));
  }
}

TEST(TopologyPresets, HaveMpresssDgx1WithDrivesBesideTheVendors) {
  Topology own = Preset("dgx1_v100_nvme");
  const Topology vendors = Preset("dgx1_v100");
  EXPECT_EQ(own.host_memory.value, 1536 * kGiga);
  EXPECT_EQ(own.drives, Preset("aws_p3dn_24xlarge").drives);
  EXPECT_EQ(DistinctMaps("dgx1_v100_nvme"), 10'080);
  EXPECT_TRUE(vendors.drives.empty());
  own.name = vendors.name;
  own.host_memory = vendors.host_memory;
  own.drives.clear();
  EXPECT_EQ(own, vendors);
}

TEST(TopologyPresets, AreFoundByNameOrTheNearestIsNamed) {
  EXPECT_EQ(FindTopologyPreset("dgx1v100").status().message(),
            "unknown topology 'dgx1v100'; did you mean 'dgx1_v100'?");
  EXPECT_THAT(std::string(FindTopologyPreset("zebra").status().message()),
              testing::StartsWith("unknown topology 'zebra'; known: aws_p3_16xlarge, "));
}

}  // namespace
}  // namespace siphon
