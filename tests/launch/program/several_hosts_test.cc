// The real program under a user's mpirun on several hosts. They are made of one machine: another
// has a host name, processes and shared memory of its own (other_host.sh), so that MPI and ranks
// can share no more with it than with a machine elsewhere. Messages go over TCP.

#include <sys/stat.h>
#include <csignal>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/process/process_probe.h"
#include "tests/launch/program/several_hosts.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST_F(SeveralHosts, GiveTheSameBitsAsOneStage) {
  for (const std::vector<int>& ranks : {std::vector{2, 2}, {1, 1, 2}}) {
    const ProgramEnd end = Mpirun(ranks, {"train", job()});
    EXPECT_EQ(end.exit_code, 0) << end.errors;
    EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
    ExpectNothingLeft();
  }
}

// Workers of each host park with each other, and with their host. Only worker 3 has room for what
// worker 0 parks, so that they have to share a server, and ranks are not workers by their numbers.
TEST_F(SeveralHosts, ParkTensorsWithinEach) {
  std::vector<std::string> arguments = {"train", job()};
  for (const char* set :
       {"topology.servers=2", "topology.network_rate=1GB/s", "memory.check=full",
        "memory.capacity=[1370KiB, 340KiB, 410KiB, 1370KiB]", "memory.strategy=d2d_swap"}) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const ProgramEnd end = Mpirun({2, 2}, arguments);
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, ContainsRegex("worker 0 parks up to [0-9.]+ KiB with worker 3;"));
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();

  arguments.back() = "memory.strategy=host_swap";
  EXPECT_EQ(Mpirun({2, 2}, arguments).exit_code, 0);
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));

  // With the other host.
  arguments.insert(arguments.end(),
                   {"--set", "memory.capacity=[2MiB, 2MiB, 370KiB, 2MiB]", "--format", "json"});
  const ProgramEnd other = Mpirun({2, 2}, arguments);
  EXPECT_EQ(other.exit_code, 0) << other.errors;
  EXPECT_THAT(other.errors, HasSubstr("worker 2 parks up to "));
  EXPECT_THAT(other.output, ContainsRegex("\"host_peak_bytes\": [1-9]"));

  // One host is not like two servers.
  const ProgramEnd wrong = Mpirun({1, 3}, arguments);
  EXPECT_EQ(wrong.exit_code, 2) << wrong.errors;
  EXPECT_THAT(wrong.errors, HasSubstr("topology.servers: is 2: the plan has 2 and 2 workers in its "
                                      "servers, and 1 and 3 were started on the hosts; "));
}

TEST_F(SeveralHosts, AreToldApartBeforeTensorsAreParkedBetweenThem) {
  const ProgramEnd end = Mpirun({2, 2}, {"train", job(), "--set", "memory.strategy=d2d_swap",
                                         "--set", "memory.capacity=1370KiB"});
  EXPECT_EQ(end.exit_code, 2) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr(", which is on another host; by topology.servers and "
                                    "topology.network_rate tensors stay within one\n"));
  ExpectNothingLeft();
}

TEST_F(SeveralHosts, WriteCheckpointsToADirectoryOfAll) {
  const std::string disk = PathOf("disk");
  ASSERT_EQ(mkdir(disk.c_str(), 0700), 0);
  const std::vector<std::string> arguments = {"train", job(), "--set",
                                              absl::StrCat("output.directory=", disk, "/run")};
  const ProgramEnd end =
      Mpirun({2, 2}, arguments, {.environment = {absl::StrCat("SIPHON_OTHER_DISK=", disk)}});
  EXPECT_EQ(end.exit_code, 2) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr(absl::StrCat(
                              "output.directory: '", disk,
                              "/run/checkpoints' is another one on host host1 (worker 2) than "
                              "worker 0's; checkpoints are written by all hosts, into a "
                              "directory that they share\n")));
  EXPECT_EQ(Mpirun({2, 2}, arguments).exit_code, 0);
  ExpectNothingLeft();
}

TEST_F(SeveralHosts, ReportARankThatIsKilled) {
  for (const int rank : {0, 1, 2, 3}) {
    const ProgramEnd end = Mpirun({2, 2}, {"train", job()}, {.environment = {Fault(rank, "kill")}});
    ExpectOneReport(end, absl::StrCat("worker ", rank, " was lost \\(rank ", rank,
                                      ", pid [0-9]+, [^\n]*\\)", kWhileRunning));
    ExpectNothingLeft();
  }
}

TEST_F(SeveralHosts, ReportARankThatFails) {
  const ProgramEnd end = Mpirun({2, 2}, {"train", job()}, {.environment = {Fault(3, "fail")}});
  ExpectOneReport(end, "worker 3 failed \\(rank 3, pid [0-9]+\\) during 3B1\n  cause: ");
  ExpectNothingLeft();
}

// Its processes live and its connections stand.
TEST_F(SeveralHosts, ReportAHostThatStandsStill) {
  for (const std::vector<int>& ranks : {std::vector{2, 1, 1}, {1, 3}}) {
    const int silent = ranks.size() == 3 ? 2 : 0;
    const ProgramEnd end =
        Mpirun(ranks, {"train", job()}, {.environment = {Fault(silent, "stop")}});
    ExpectOneReport(end, absl::StrCat("worker ", silent, " was lost \\(rank ", silent,
                                      ", pid [0-9]+, no heartbeat for 2.00 s\\)", kWhileRunning));
    ExpectNothingLeft();
  }
}

TEST_F(SeveralHosts, StopTogether) {
  RunOptions options = {.environment = {Fault(2, "stop")}};
  options.meanwhile = [this](pid_t mpirun) {
    const std::optional<ProcessId> stopped = WaitForStopped(mpirun);
    ASSERT_TRUE(stopped.has_value());
    // One of this host is asked.
    const std::optional<ProcessId> asked = ProcessOfRank(1);
    ASSERT_TRUE(asked.has_value());
    kill(static_cast<pid_t>(asked->pid), SIGUSR1);
    kill(static_cast<pid_t>(stopped->pid), SIGCONT);
  };
  const ProgramEnd end = Mpirun({2, 2}, {"train", job()}, options);
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, ContainsRegex("\nstopped after step [5-9] of 12, in "));
  ExpectToGoOn();
}

}  // namespace
}  // namespace siphon
