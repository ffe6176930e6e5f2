#include "launch/topology/job_topology.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

JobConfig JobWith(const std::string& source, const std::string& name) {
  JobConfig job;
  job.topology.source = source;
  job.topology.name = name;
  job.origins["topology.name"] = "job.yaml:3:9";
  return job;
}

TEST(JobTopology, IsNoneWhereTheJobNamesNone) {
  const auto topology = LoadJobTopology(JobConfig());
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_FALSE(topology->has_value());
}

TEST(JobTopology, IsAPresetOrAFile) {
  const auto preset = LoadJobTopology(JobWith("preset", "dgx_a100"));
  ASSERT_TRUE(preset.ok()) << preset.status();
  ASSERT_TRUE(preset->has_value());
  EXPECT_EQ(DeviceCount(**preset), 8);
  // CTest starts us in the project's root.
  EXPECT_EQ(*LoadJobTopology(JobWith("file", "configs/topologies/dgx_a100.yaml")), *preset);
}

TEST(JobTopology, IsThereAsOftenAsTheJobHasServers) {
  JobConfig job = JobWith("preset", "dgx_a100");
  const Topology one = LoadJobTopology(job)->value();
  job.topology.servers = 3;
  job.topology.network_rate = BytesPerSecond(25'000'000'000);
  job.topology.network_latency = Nanos(3'000);
  EXPECT_EQ(LoadJobTopology(job)->value(),
            SeveralServers(one, 3, {BytesPerSecond(25'000'000'000), Nanos(3'000)}));
}

TEST(JobTopology, ThatIsWrongIsRefusedWithBothPlaces) {
  EXPECT_EQ(LoadJobTopology(JobWith("preset", "dgx_a10")).status(),
            absl::InvalidArgumentError("job.yaml:3:9: topology.name: unknown topology 'dgx_a10'; "
                                       "did you mean 'dgx_a100'?"));
  EXPECT_EQ(LoadJobTopology(JobWith("file", "no/such.yaml")).status(),
            absl::InvalidArgumentError(
                "job.yaml:3:9: topology.name: cannot read topology 'no/such.yaml': No such "
                "file or directory"));
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("siphon-server-", getpid())).string();
  std::ofstream(path) << "name: x\ndevices: none\n";
  EXPECT_EQ(
      LoadJobTopology(JobWith("file", path)).status(),
      absl::InvalidArgumentError(absl::StrCat("job.yaml:3:9: topology.name: ", path,
                                              ":2:10: devices: is 'none'; write a whole number")));
  std::filesystem::remove(path);
}

// A file that is gone with the test.
class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path((std::filesystem::temp_directory_path() / absl::StrCat("siphon-matrix-", getpid()))
                 .string()) {
    std::ofstream(path) << text;
  }
  ~TextFile() { std::filesystem::remove(path); }
  const std::string path;
};

TEST(JobTopology, IsReadFromWhatNvidiaSmiPrints) {
  const std::string matrix = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n";
  {
    const TextFile file("GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-1)\n" + matrix);
    const auto topology = LoadJobTopology(JobWith("file", file.path));
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_EQ((*topology)->devices[1].memory, Bytes(int64_t{16} << 30));
    EXPECT_EQ((*topology)->links[0].rate.value, 48'400'000'000);
  }
  // How much memory devices have must be said somewhere.
  const TextFile file(matrix);
  JobConfig job = JobWith("file", file.path);
  EXPECT_EQ(LoadJobTopology(job).status(),
            absl::InvalidArgumentError(absl::StrCat(
                "job.yaml:3:9: topology.name: ", file.path,
                ": does not tell the devices' memory; write memory.capacity, or make a topology "
                "file of it by siphon topology, whose --device names their kind")));
  job.memory.capacity = {Bytes(1 << 30)};
  const auto topology = LoadJobTopology(job);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ((*topology)->name, "2 devices by nvidia-smi topo -m, V100 and rates ASSUMED");
}

TEST(JobTopology, NamesThePlaceInAMatrixThatIsWrong) {
  const TextFile file("\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV1\t X \n");
  EXPECT_EQ(LoadJobTopology(JobWith("file", file.path)).status(),
            absl::InvalidArgumentError(absl::StrCat(
                "job.yaml:3:9: topology.name: ", file.path,
                ":3:6: row GPU1, column 0: is NV1, but row GPU0, column 1 is NV2; connections are "
                "the same both ways")));
}

TEST(ThrottledTopology, HasEveryRateTimesTheScale) {
  JobConfig job = JobWith("preset", "dgx1_v100");
  EXPECT_FALSE(LoadThrottledTopology(job)->has_value());
  const Topology full = LoadJobTopology(job)->value();
  job.topology.throttle = "1";
  EXPECT_EQ(LoadThrottledTopology(job)->value(), full);
  job.topology.throttle = "0.5";
  const auto half = LoadThrottledTopology(job);
  ASSERT_TRUE(half.ok()) << half.status();
  ASSERT_EQ((*half)->links.size(), full.links.size());
  for (size_t link = 0; link < full.links.size(); ++link) {
    EXPECT_EQ((*half)->links[link].rate.value, full.links[link].rate.value / 2);
    EXPECT_EQ((*half)->links[link].latency, full.links[link].latency);
  }
  ASSERT_FALSE(full.switches.empty());
  for (size_t uplink = 0; uplink < full.switches.size(); ++uplink) {
    EXPECT_GT((*half)->switches[uplink].to_host, BytesPerSecond(0));
    EXPECT_EQ((*half)->switches[uplink].to_host.value, full.switches[uplink].to_host.value / 2);
    EXPECT_EQ((*half)->switches[uplink].from_host_both.value,
              full.switches[uplink].from_host_both.value / 2);
  }
  EXPECT_EQ((*half)->devices[0].memory, full.devices[0].memory);
}

TEST(ThrottledTopology, NeedsLinksAndLeavesThemMoving) {
  JobConfig job;
  job.topology.throttle = "1";
  job.origins["topology.throttle"] = "job.yaml:4:13";
  EXPECT_EQ(LoadThrottledTopology(job).status(),
            absl::InvalidArgumentError("job.yaml:4:13: topology.throttle: needs links to hold to "
                                       "their rates; write topology.name"));
  job.topology.name = "dgx1_v100";
  job.topology.throttle = "1e-30";
  EXPECT_EQ(LoadThrottledTopology(job).status(),
            absl::InvalidArgumentError("job.yaml:4:13: topology.throttle: 1e-30 leaves links of "
                                       "dgx1_v100 less than a byte a second; write more"));
}

}  // namespace
}  // namespace siphon
