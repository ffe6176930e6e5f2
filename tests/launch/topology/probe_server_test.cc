#include "launch/topology/probe/probe_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/topology/server_facts.h"
#include "launch/topology/topology_file.h"
#include "tests/launch/topology/probe_fixture.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class Probe : public ProbeTest {};

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

// As in a virtual machine that shows nodes, but no bridges: each way to the host is taken to be a
// device's own, and yet nobody knows that they meet above them.
TEST_F(Probe, DoesNotGuessWhereDevicesMeet) {
  MadeUpServer server(3, "NVIDIA L40S");
  Wire(std::vector(3, std::vector(3, 0)));
  for (size_t device = 0; device < 3; ++device) Place(device, "", device == 2 ? 1 : 0, "");
  const ProbedServer probed = Run(server);
  EXPECT_TRUE(probed.discovered.knows_nodes);
  EXPECT_EQ(probed.discovered.topology.switches.size(), 3u);
  using enum PciePath;
  EXPECT_EQ(
      probed.discovered.pcie_paths,
      PciePaths({{kUnknown, kUnknown, kSys}, {kUnknown, kUnknown, kSys}, {kSys, kSys, kUnknown}}));
  Place(2, "", 0, "");
  for (const std::vector<PciePath>& row : Run(server).discovered.pcie_paths) {
    EXPECT_THAT(row, Each(kUnknown));
  }
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

// Rates of small copies would be bad ones for all jobs to come.
TEST_F(Probe, KeepsNothingOfCopiesOfAnotherSize) {
  MadeUpServer server(2, "Tesla V100-SXM2-32GB");
  const auto link = [&](double rate) {
    server.Link(0, 1, rate);
    server.Link(1, 0, rate);
  };
  link(15);
  Wire({{0, 1}, {1, 0}});
  sources_.cache = (directory_ / "cache").string();
  sources_.sizes = CalibrationSizes{.bytes = Bytes(128 << 10)};
  const ProbedServer small = Run(server);
  EXPECT_NEAR(RateOfLink(small.discovered.topology, 0, 1), 15, 0.2);
  EXPECT_FALSE(fs::exists(directory_ / "cache"));
  EXPECT_EQ(small.file, "");
  const int once = server.trials();
  EXPECT_THAT(small.discovered.notes, Contains("measured with copies of 128 KiB"));
  EXPECT_THAT(small.discovered.notes,
              Contains("not kept for the next time, as what is kept is measured with copies of "
                       "64.0 MiB"));
  EXPECT_THAT(small.yaml, HasSubstr("# note: measured with copies of 128 KiB\n"));

  link(24);
  sources_.sizes.reset();
  const ProbedServer usual = Run(server);
  EXPECT_NEAR(RateOfLink(usual.discovered.topology, 0, 1), 24, 0.2);
  link(15);
  sources_.sizes = CalibrationSizes{.bytes = Bytes(128 << 10)};
  EXPECT_EQ(Run(server).discovered.topology, small.discovered.topology);
  EXPECT_EQ(server.trials(), 3 * once);
  sources_.sizes.reset();
  EXPECT_EQ(Run(server).discovered.topology, usual.discovered.topology);
  EXPECT_EQ(server.trials(), 3 * once);
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

}  // namespace
}  // namespace siphon
