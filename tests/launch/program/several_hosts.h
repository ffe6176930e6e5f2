#ifndef SIPHON_TESTS_LAUNCH_PROGRAM_SEVERAL_HOSTS_H_
#define SIPHON_TESTS_LAUNCH_PROGRAM_SEVERAL_HOSTS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launch/program/mpirun_job.h"

namespace siphon {

// The tiny job under a user's mpirun on several hosts. They are made of one machine: another has a
// host name, processes and shared memory of its own (other_host.sh), so that MPI and ranks can
// share no more with it than with a machine elsewhere. Messages go over TCP.
class SeveralHosts : public MpirunJobTest {
 protected:
  void SetUp() override {
    const ProgramEnd other = Run({SIPHON_OTHER_HOST, "other", "hostname"});
    if (other.exit_code != 0 || other.output != "other\n") {
      GTEST_SKIP() << "skipped, because name spaces of one's own are forbidden here";
    }
  }

  // `ranks`: how many each host gets; the first host is this one.
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
    return RunUnderMpirun(
        {"--hostfile", WriteFile("hosts", hosts), "-np", absl::StrCat(all), "--mca",
         "plm_rsh_agent", SIPHON_OTHER_HOST, "--mca", "btl", "self,vader,tcp", "--mca",
         "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"},
        arguments, options);
  }

  // One report, wherever the rank was, and before long.
  static void ExpectOneReport(const ProgramEnd& end, const std::string& report) {
    EXPECT_NE(end.exit_code, 0);
    EXPECT_THAT(end.errors, testing::ContainsRegex("(^|\n)siphon: " + report));
    EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
    EXPECT_LT(end.seconds_since_last_step, 10);
  }

  static std::string Fault(int rank, const std::string& what) {
    return absl::StrCat("SIPHON_INJECT_FAULT=", rank, ":5:", rank, "B1:", what);
  }

  // What is known of a rank elsewhere is a moment old: it may be any earlier action, or none.
  static constexpr char kWhileRunning[] =
      "((, last heard of)? during "
      "([0-3][A-Z_]+[0-9]*|making its stages|(writing|completing) a checkpoint))?"
      "\n  the job ended after step [45]; ";
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_PROGRAM_SEVERAL_HOSTS_H_
