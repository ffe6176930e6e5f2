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

}  // namespace
}  // namespace siphon
