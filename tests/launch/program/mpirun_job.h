#ifndef SIPHON_TESTS_LAUNCH_PROGRAM_MPIRUN_JOB_H_
#define SIPHON_TESTS_LAUNCH_PROGRAM_MPIRUN_JOB_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {

// The tiny job started by a user's own mpirun.
class MpirunJobTest : public TinyJobTest {
 protected:
  // What works as root, in a container, and with fewer cores than workers, beside `options` of
  // mpirun.
  ProgramEnd RunUnderMpirun(const std::vector<std::string>& options,
                            const std::vector<std::string>& arguments, const RunOptions& run) {
    std::vector<std::string> command = {
        "mpirun", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "mpi_yield_when_idle", "1"};
    command.insert(command.end(), options.begin(), options.end());
    if (geteuid() == 0) command.push_back("--allow-run-as-root");
    command.push_back(program().path);
    command.insert(command.end(), arguments.begin(), arguments.end());
    RunOptions all = run;
    all.environment.insert(all.environment.begin(), program().environment.begin(),
                           program().environment.end());
    return Run(std::move(command), all);
  }

  static int LinesOfOurs(const std::string& text) {
    int count = 0;
    for (const auto line : absl::StrSplit(text, '\n')) count += absl::StartsWith(line, "siphon: ");
    return count;
  }

  // From its newest checkpoint to the end, as if nothing had been.
  void ExpectToGoOn() {
    const ProgramEnd next = Siphon({"train", job(), "--set", "checkpoint.resume=auto"});
    EXPECT_EQ(next.exit_code, 0) << next.errors;
    EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
    ExpectNothingLeft();
  }
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_PROGRAM_MPIRUN_JOB_H_
