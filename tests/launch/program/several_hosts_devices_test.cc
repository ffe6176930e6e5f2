// The program on several hosts, with a fake CUDA device for each worker: each host has devices of
// its own, which have the same numbers as another one's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launch/program/device_jobs.h"
#include "tests/launch/program/several_hosts.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// A server like each of the hosts.
constexpr char kOneDevice[] = R"(name: a device
device: V100
devices: 1
)";
constexpr char kTwoDevices[] = R"(name: two devices with a wire
device: V100
devices: 2
wires: [[0, 1], [1, 0]]
wire_rate: 24GB/s
latency: 2us
)";

class DevicesOfSeveralHosts : public SeveralHosts {
 protected:
  // One worker, or two, on each of two hosts.
  ProgramEnd Train(int workers, const std::string& strategy, const std::string& capacity,
                   const RunOptions& options = {}, bool says_which_server = true) {
    UseProgram(DeviceProgram(PathOf("devices"), workers));
    std::vector<std::string> settings = {absl::StrCat("pipeline.stages=", 2 * workers),
                                         "topology.servers=2",
                                         "topology.network_rate=1GB/s",
                                         "memory.check=full",
                                         "memory.capacity=" + capacity,
                                         "memory.strategy=" + strategy};
    if (says_which_server) {
      const char* const server = workers == 1 ? kOneDevice : kTwoDevices;
      settings.insert(settings.end(), {"topology.source=file",
                                       "topology.name=" + WriteFile("server.yaml", server)});
    }
    std::vector<std::string> arguments = {"train", job()};
    for (const std::string& set : settings) arguments.insert(arguments.end(), {"--set", set});
    return Mpirun({workers, workers}, arguments, options);
  }
  void SetUp() override {
    SeveralHosts::SetUp();
    WriteFile("job.yaml", OnDevices(TinyJobText()));
  }
  // One worker of each host has a context there, and nowhere else.
  static void ExpectWorkersOn(int device, const std::string& said) {
    const std::string words = absl::StrCat("contexts on ", device, ",");
    EXPECT_THAT(said, ContainsRegex(absl::StrCat(words, "(.|\n)*", words)));
  }
};

// Messages between hosts go by NCCL as well; what is lent stays within one.
TEST_F(DevicesOfSeveralHosts, GiveTheSameBitsWithMemoryOfOneAnother) {
  const ProgramEnd end = Train(2, "d2d_swap", TightCapacity(job()));
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, ContainsRegex("worker 0 parks up to [0-9.]+ KiB with worker 1;"));
  EXPECT_THAT(end.errors, HasSubstr(" 1 opened"));
  for (const int device : {0, 1}) ExpectWorkersOn(device, end.errors);
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

// The devices that messages go between have one number.
TEST_F(DevicesOfSeveralHosts, GiveTheSameBitsWithEverythingKept) {
  const ProgramEnd end = Train(1, "keep", "400MiB");
  ASSERT_EQ(end.exit_code, 0) << end.errors;
  ExpectWorkersOn(0, end.errors);
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

// Then each has as many devices as workers.
TEST_F(DevicesOfSeveralHosts, KeepEverythingThoughNothingSaysWhichTheyAre) {
  const ProgramEnd end = Train(1, "keep", "400MiB", {}, /*says_which_server=*/false);
  ASSERT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
}

TEST_F(DevicesOfSeveralHosts, ReportARankThatIsKilled) {
  const ProgramEnd end =
      Train(2, "d2d_swap", TightCapacity(job()), {.environment = {Fault(3, "kill")}});
  ExpectOneReport(
      end, absl::StrCat("worker 3 was lost \\(rank 3, pid [0-9]+, [^\n]*\\)", kWhileRunning));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace siphon
