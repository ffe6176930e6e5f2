// What siphon plan looks at before it plans, and what of the plan is left where a file cannot be
// written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "launch/commands/plan_study.h"
#include "tests/launch/commands/plan_fixture.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class PlanOutputs : public PlanCommand {};

// Of a job that does not fit no plan is written, so that only who looks before knows.
TEST_F(PlanOutputs, AreLookedAtBeforeAnythingIsPlanned) {
  const std::string job = Write(kSmallJob);
  const std::string missing = directory_ + "/none/plan";
  for (const char* flag : {"--output", "--report"}) {
    const CommandEnd end =
        Run({job, "--strategy", "keep", "--set", "memory.capacity=10KiB", flag, missing});
    EXPECT_EQ(end.code, kExitBadInput) << flag;
    EXPECT_EQ(end.out, "") << flag;
    EXPECT_EQ(end.err, absl::StrCat("siphon: ", flag, ": writing ", missing, ": folder ",
                                    directory_, "/none: No such file or directory\n"));
  }
}

TEST_F(PlanOutputs, LeaveThePlanOnTheTerminalWhereTheyFail) {
  const std::string job = Write(kSmallJob);
  const std::string full = directory_ + "/full";
  const std::string page = directory_ + "/plan.html";
  fs::create_symlink("/dev/full", full);
  const CommandEnd end = Run({job, "--output", full, "--report", page});
  EXPECT_EQ(end.code, kExitFailure);
  EXPECT_EQ(end.err, "siphon: writing " + full + ": No space left on device\n");
  EXPECT_THAT(end.out, HasSubstr("\nstep time "));
  EXPECT_TRUE(fs::exists(page));
}

class PlanRequests : public PlanCommand {
 protected:
  absl::Status Check(const std::vector<std::string>& settings) const {
    return CheckRequest(WithSettings({.job = {.job = job_}}, settings));
  }

  const std::string job_ = Write(kSmallJob);
};

// What is refused is known of each --what-if before the first plan is made.
TEST_F(PlanRequests, AreRefusedBeforeTheyArePlanned) {
  EXPECT_TRUE(Check({}).ok());
  EXPECT_THAT(Check({"pipeline.stagess=3"}).message(), HasSubstr("pipeline.stagess"));
  EXPECT_THAT(Check({"memory.strategy=hope"}).message(), HasSubstr("'hope' is not known"));
  EXPECT_THAT(
      Check({"pipeline.schedule=dualpipev", "pipeline.stages=6", "train.global_batch=8"}).message(),
      HasSubstr("fills its pipeline first"));
  EXPECT_THAT(Check({"topology.name=nowhere"}).message(), HasSubstr("nowhere"));
  EXPECT_THAT(
      Check({"pipeline.backend=cuda", "topology.name=v100x4_nv2", "pipeline.stages=6"}).message(),
      HasSubstr("has 4 devices for 6 workers"));
}

TEST_F(PlanRequests, ThatDoNotFitAreRequests) {
  EXPECT_TRUE(Check({"memory.capacity=10KiB", "memory.strategy=keep"}).ok());
}

TEST_F(PlanRequests, FollowPlanFilesOfTheirJobs) {
  const std::string file = "memory.plan=" + directory_ + "/plan.txt";
  EXPECT_THAT(Check({file}).message(), HasSubstr("memory.plan"));
  ASSERT_EQ(Run({job_, "--output", directory_ + "/plan.txt"}).code, kExitDone);
  EXPECT_TRUE(Check({file}).ok());
  EXPECT_THAT(Check({file, "train.microbatch=2"}).message(), HasSubstr("plan this job again"));
}

// The job is asked first: what is wrong with it is wrong with each --what-if.
TEST_F(PlanRequests, NameAWhatIfOnlyWhereItIsThat) {
  EXPECT_THAT(Run({job_, "--what-if", "pipeline.stagess=3"}).err,
              StartsWith("siphon: --what-if pipeline.stagess=3: --set pipeline.stagess: "));
  EXPECT_THAT(Run({job_, "--set", "train.stepss=3", "--what-if", "train.microbatch=2"}).err,
              StartsWith("siphon: --set train.stepss: "));
}

}  // namespace
}  // namespace siphon
