// Plugins that end the program which loads them: one report, and an exit code that is none of a
// success.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launch/program/mpirun_job.h"

namespace siphon {
namespace {

using testing::MatchesRegex;
using testing::Not;

class EndingPlugin : public MpirunJobTest {
 protected:
  // Arguments of the tiny job with that plugin.
  std::vector<std::string> Train(int hidden) const {
    return {"train", job(),
            "--set", "model.kind=plugin",
            "--set", absl::StrCat("model.library=", SIPHON_ENDING_PLUGIN),
            "--set", absl::StrCat("model.hidden=", hidden),
            "--set", "pipeline.stages=2"};
  }
  static std::string Refusal(const std::string& how) {
    return absl::StrCat("siphon: --set model.library: plugin ", SIPHON_ENDING_PLUGIN, how, "\n");
  }
};

TEST_F(EndingPlugin, ByExitWhileItBuildsItsModelIsAnError) {
  const ProgramEnd end = Siphon(Train(1));
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.errors,
            Refusal(" ended the program by exit(); a plugin returns a model, or an error"));
  ExpectNothingLeft();
}

TEST_F(EndingPlugin, ByACrashWhileItBuildsItsModelIsSaidInALine) {
  const ProgramEnd end = Siphon(Train(2));
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.errors, Refusal(" crashed: signal 11 (Segmentation fault)"));
  ExpectNothingLeft();
}

TEST_F(EndingPlugin, ByACrashInAStepIsOneReportWithTheSignalAndTheAction) {
  const ProgramEnd end = Siphon(Train(3));
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.errors,
              MatchesRegex("(training [^\n]*\n)?siphon: worker 1 was lost \\(rank 1, pid [0-9]+, "
                           "killed by signal 11 \\(Segmentation fault\\)\\) during 1F0\n  the job "
                           "ended before its first step was complete; there is no checkpoint to "
                           "continue from\n"));
  ExpectNothingLeft();
}

TEST_F(EndingPlugin, ByACrashUnderAUsersOwnMpirunShowsNoBacktrace) {
  const ProgramEnd end =
      RunUnderMpirun({"-np", "2", "--oversubscribe", "--mca", "btl", "self,vader"}, Train(3), {});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.errors, testing::ContainsRegex("siphon: worker 1 was lost \\(rank 1, [^\n]*\\) "
                                                 "during 1F0\n"));
  EXPECT_THAT(end.errors, Not(testing::HasSubstr("Process received signal")));
  EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
  ExpectNothingLeft();
}

}  // namespace
}  // namespace siphon
