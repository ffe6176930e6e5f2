#include "launch/topology/probe_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/topology/server_facts.h"
#include "launch/topology/topology_file.h"
#include "tests/launch/topology/made_up_server.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr int64_t kGigabyte = 1'000'000'000;

class Probe : public testing::Test {
 protected:
  Probe() {
    std::string pattern = (fs::temp_directory_path() / "siphon-probe-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    sources_.sysfs = (directory_ / "sys").string();
    sources_.nvml = [this]() -> absl::StatusOr<NvmlServer> { return nvml_; };
  }
  ~Probe() override { fs::remove_all(directory_); }

  // 0000:10:00.0 and so on, wires[from][to].
  void Wire(const std::vector<std::vector<int>>& wires) {
    nvml_ = {.driver = "580.65"};
    for (size_t from = 0; from < wires.size(); ++from) {
      NvmlDevice device{.bus_id = BusId(from), .uuid = ""};
      for (size_t to = 0; to < wires[from].size(); ++to) {
        device.links.insert(device.links.end(), static_cast<size_t>(wires[from][to]),
                            {NvlinkEnd::At::kDevice, BusId(to)});
      }
      nvml_.devices.push_back(device);
    }
  }
  void WireToSwitches(const std::vector<int>& wires) {
    nvml_ = {.driver = "580.65"};
    for (size_t device = 0; device < wires.size(); ++device) {
      nvml_.devices.push_back(
          {.bus_id = BusId(device),
           .links = std::vector<NvlinkEnd>(static_cast<size_t>(wires[device]))});
    }
  }
  // Puts devices below bridges of the made-up /sys.
  void Place(size_t device, const std::string& bridges, int node, const std::string& speed) {
    const fs::path path = fs::path(sources_.sysfs) / "devices/pci0000:00" / bridges / BusId(device);
    fs::create_directories(path);
    fs::create_directories(fs::path(sources_.sysfs) / "bus/pci/devices");
    fs::create_symlink(path, fs::path(sources_.sysfs) / "bus/pci/devices" / BusId(device));
    std::ofstream(path / "numa_node") << node << "\n";
    std::ofstream(path / "max_link_speed") << speed << "\n";
    std::ofstream(path / "max_link_width") << "16\n";
  }
  ProbedServer Run(const MadeUpServer& server) {
    sources_.module = &server;
    absl::StatusOr<ProbedServer> probed = ProbeServer(sources_);
    EXPECT_TRUE(probed.ok()) << probed.status();
    return probed.ok() ? *std::move(probed) : ProbedServer();
  }
  static std::string BusId(size_t device) { return absl::StrCat("0000:", 10 + device, ":00.0"); }
  static double RateOfLink(const Topology& topology, int from, int to) {
    const auto link = FindLink(topology, DeviceId(from), DeviceId(to));
    return link.has_value() ? static_cast<double>(link->rate.value) / kGigabyte : 0;
  }

  fs::path directory_;
  NvmlServer nvml_;
  ProbeSources sources_;
};

// Three of a DGX-1's devices: 0 and 1 by one wire and behind one switch, 0 and 2 by two wires.
TEST_F(Probe, MeasuresBoardsWithDirectLinks) {
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
  EXPECT_EQ(topology.nominal_wire_rate, BytesPerSecond(25 * kGigabyte));
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

TEST_F(Probe, SeesThatAFabricGivesAllPeersTogetherWhatItGivesOne) {
  MadeUpServer server(4, "NVIDIA H200");
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from != to) server.Link(from, to, 374);
    }
  }
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
TEST_F(Probe, LeavesOutPairsThatAFabricDoesNotLink) {
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

// What a device has that is left out of the fabric is no matter of the others.
TEST_F(Probe, LeavesOutDevicesWithoutWiresToTheFabric) {
  MadeUpServer server(3, "NVIDIA H200");
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from != to) server.Link(from, to, from == 2 || to == 2 ? 37 : 374);
    }
  }
  WireToSwitches({18, 18, 0});
  const ProbedServer probed = Run(server);
  const Topology& topology = probed.discovered.topology;
  EXPECT_EQ(topology.copy_engines, CopyEngines::kOneForAllPeers);
  EXPECT_NEAR(RateOfLink(topology, 0, 1), 374, 4);
  EXPECT_FALSE(FindLink(topology, DeviceId(0), DeviceId(2)).has_value());
  EXPECT_THAT(probed.discovered.notes,
              Contains("warning: GPU2 has 0 of 18 NVLinks to the switches up"));
}

// One wire of a pair is bad, and a card sits in a slot that gives less than it should.
TEST_F(Probe, WarnsOfWhatIsBelowSixtyPercent) {
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

TEST_F(Probe, GoesOnWithoutNvml) {
  MadeUpServer server(2, "Some new card");
  server.Link(0, 1, 30);
  server.Link(1, 0, 30);
  sources_.nvml = []() -> absl::StatusOr<NvmlServer> { return absl::NotFoundError("no NVML"); };
  sources_.cache = (directory_ / "cache").string();
  const ProbedServer probed = Run(server);
  EXPECT_NEAR(RateOfLink(probed.discovered.topology, 0, 1), 30, 0.2);
  EXPECT_EQ(WiresBetween(probed.discovered.topology, DeviceId(0), DeviceId(1)), 0);
  EXPECT_THAT(probed.discovered.notes,
              Contains("no NVML; counts of NVLinks are not known, rates are"));
  EXPECT_FALSE(fs::exists(directory_ / "cache"));
}

TEST_F(Probe, SaysWhatDoesNotAgree) {
  MadeUpServer server(2, "Tesla V100-SXM2-32GB");
  server.Link(0, 1, 24);
  server.Link(1, 0, 24);
  server.devices()[1].name = "Tesla V100-SXM2-16GB";
  Wire({{0, 2, 1}, {1, 0, 0}, {1, 0, 0}});  // a third one that CUDA does not show
  const ProbedServer probed = Run(server);
  EXPECT_THAT(probed.discovered.notes,
              Contains("1 NVLinks end at devices that CUDA does not show here "
                       "(CUDA_VISIBLE_DEVICES)"));
  EXPECT_THAT(probed.discovered.notes,
              Contains("warning: GPU0 has 2 NVLinks to GPU1, which has 1 back"));
  EXPECT_THAT(probed.discovered.notes,
              Contains(StartsWith("warning: GPU1 is a Tesla V100-SXM2-16")));
  EXPECT_EQ(WiresBetween(probed.discovered.topology, DeviceId(0), DeviceId(1)), 1);
}

TEST_F(Probe, TakesOneDeviceAlone) {
  MadeUpServer server(1, "NVIDIA H200");
  WireToSwitches({18});
  const ProbedServer probed = Run(server);
  EXPECT_THAT(probed.discovered.topology.links, IsEmpty());
  EXPECT_EQ(probed.discovered.topology.switches.size(), 1u);
}

TEST_F(Probe, KeepsWhatItMeasuredForTheSameDevicesAndDriver) {
  MadeUpServer server(2, "Tesla V100-SXM2-32GB");
  server.Link(0, 1, 24);
  server.Link(1, 0, 24);
  Wire({{0, 1}, {1, 0}});
  sources_.cache = (directory_ / "cache").string();
  const ProbedServer first = Run(server);
  const int trials = server.trials();
  const ProbedServer second = Run(server);
  EXPECT_EQ(server.trials(), trials);
  EXPECT_EQ(second.discovered.topology, first.discovered.topology);
  EXPECT_THAT(second.discovered.notes, Contains(StartsWith("measured earlier")));
  EXPECT_EQ(second.yaml, first.yaml);

  sources_.is_fresh = true;
  Run(server);
  EXPECT_EQ(server.trials(), 2 * trials);
  sources_.is_fresh = false;
  nvml_.driver = "590.1";
  Run(server);
  EXPECT_EQ(server.trials(), 3 * trials);
  server.devices()[1].uuid = "GPU-new";
  Run(server);
  EXPECT_EQ(server.trials(), 4 * trials);
}

TEST_F(Probe, MeasuresAgainWhatWasKeptAndIsSpoilt) {
  MadeUpServer server(1, "NVIDIA H200");
  WireToSwitches({18});
  sources_.cache = (directory_ / "cache").string();
  Run(server);
  const int trials = server.trials();
  for (const auto& entry : fs::directory_iterator(directory_ / "cache")) {
    std::ofstream(entry.path(), std::ios::app) << "nonsense\n";
  }
  Run(server);
  EXPECT_EQ(server.trials(), 2 * trials);
}

TEST_F(Probe, IsNotSpoiltByACacheThatCannotBeWritten) {
  MadeUpServer server(1, "NVIDIA H200");
  WireToSwitches({18});
  std::ofstream(directory_ / "file") << "";
  sources_.cache = (directory_ / "file").string();
  EXPECT_THAT(Run(server).discovered.notes,
              Contains(StartsWith("warning: could not be kept for the next time")));
}

// What was measured can be a job's topology file.
TEST_F(Probe, WritesAFileThatIsTheSameServer) {
  MadeUpServer server(2, "Tesla \"V100\"");
  server.Link(0, 1, 24);
  server.Link(1, 0, 20);
  Wire({{0, 1}, {1, 0}});
  const ProbedServer probed = Run(server);
  const absl::StatusOr<Topology> parsed = ParseTopology(probed.yaml, "file");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, probed.discovered.topology);
}

TEST(DeviceKindOf, FindsWholeWordsAndTheNearestSize) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  EXPECT_EQ(DeviceKindOf("Tesla V100-SXM2-16GB", Bytes(16 * kGiB)), "V100");
  EXPECT_EQ(DeviceKindOf("Tesla V100-SXM2-32GB", Bytes(32 * kGiB)), "V100-32");
  EXPECT_EQ(DeviceKindOf("NVIDIA A100-SXM4-80GB", Bytes(80 * kGiB)), "A100-80");
  EXPECT_EQ(DeviceKindOf("NVIDIA H200", Bytes(140 * kGiB)), "H200");
  EXPECT_EQ(DeviceKindOf("NVIDIA GH200 480GB", Bytes(95 * kGiB)), "");
  EXPECT_EQ(DeviceKindOf("NVIDIA GeForce GTX 1080 Ti", Bytes(11 * kGiB)), "GTX-1080Ti");
  EXPECT_EQ(DeviceKindOf("NVIDIA GeForce GTX 980 Ti", Bytes(6 * kGiB)), "");
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
