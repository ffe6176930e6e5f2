// The real program under a user's mpirun on several hosts. They are made of one machine: another
// has a host name, processes and shared memory of its own (other_host.sh), so that MPI and ranks
// can share no more with it than with a machine elsewhere. Messages go over TCP.

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/run/trainer.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class SeveralHosts : public TinyJobTest {
 protected:
  void SetUp() override {
    const ProgramEnd other = Run({SIPHON_OTHER_HOST, "other", "hostname"});
    if (other.exit_code != 0 || other.output != "other\n") {
      GTEST_SKIP() << "skipped, because name spaces of one's own are forbidden here";
    }
  }

  // `hosts`: their names and how many ranks each gets, by number; "" is this one.
  ProgramEnd Mpirun(const std::vector<int>& ranks, const std::vector<std::string>& arguments,
                    RunOptions options = {}) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    std::string hosts;
    int all = 0;
    for (size_t host = 0; host < ranks.size(); ++host) {
      const std::string of_host = host == 0 ? name : absl::StrCat("host", host);
      absl::StrAppend(&hosts, of_host, " slots=", ranks[host], "\n");
      all += ranks[host];
    }
    std::vector<std::string> command = {"mpirun", "--hostfile",      WriteFile("hosts", hosts),
                                        "-np",    absl::StrCat(all), "--bind-to",
                                        "none"};
    const std::vector<std::pair<const char*, const char*>> settings = {
        {"plm_rsh_agent", SIPHON_OTHER_HOST},
        {"pml", "ob1"},
        {"btl", "self,vader,tcp"},
        {"btl_tcp_if_include", "lo"},
        {"oob_tcp_if_include", "lo"},
        {"mpi_yield_when_idle", "1"}};
    for (const auto& [key, value] : settings) {
      command.insert(command.end(), {"--mca", key, value});
    }
    if (geteuid() == 0) command.push_back("--allow-run-as-root");
    command.push_back(SIPHON_PROGRAM);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Run(std::move(command), options);
  }
};

TEST_F(SeveralHosts, GiveTheSameBitsAsOneStage) {
  for (const std::vector<int>& ranks : {std::vector{2, 2}, {1, 1, 2}}) {
    const ProgramEnd end = Mpirun(ranks, {"train", job()});
    EXPECT_EQ(end.exit_code, 0) << end.errors;
    EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
    ExpectNothingLeft();
  }
}

TEST_F(SeveralHosts, EndWithTheLossOfARankOnAnyOfThem) {
  for (const int rank : {1, 2}) {
    const ProgramEnd end = Mpirun(
        {2, 2}, {"train", job()},
        {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=", rank, ":5:", rank, "B1:kill")}});
    EXPECT_NE(end.exit_code, 0);
    EXPECT_THAT(end.errors, HasSubstr(absl::StrCat("siphon: worker ", rank, " was lost (rank ",
                                                   rank, ", pid ")));
    EXPECT_LT(end.seconds_since_last_step, 10);
    ExpectNothingLeft();
  }
}

}  // namespace
}  // namespace siphon
