// The real program follows the plan file of an earlier run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launch/config/read_text_file.h"
#include "tests/launch/program/program_run.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr char kCapacity[] = "memory.capacity=1390KiB";

class PlanFileOfARun : public TinyJobTest {
 protected:
  ProgramEnd Train(const std::string& directory, const std::vector<std::string>& settings) {
    std::vector<std::string> arguments = {
        "train", job(), "--set", kCapacity, "--set", "output.directory=" + PathOf(directory)};
    for (const std::string& setting : settings) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    return Siphon(arguments);
  }
  std::string PlanOf(const std::string& directory) const {
    return ReadTextFile(PathOf(directory) + "/plan.txt", "plan").value_or("");
  }
};

TEST_F(PlanFileOfARun, IsFollowedByAnother) {
  const ProgramEnd first = Train("first", {"memory.strategy=d2d_swap", "memory.replan=false"});
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const std::string plan = "memory.plan=" + PathOf("first") + "/plan.txt";
  const ProgramEnd second = Train("second", {plan});
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_THAT(second.errors, HasSubstr("/first/plan.txt has it, worker 0 parks up to "));
  EXPECT_EQ(PlanOf("second"), PlanOf("first"));
  EXPECT_EQ(RunCheckpoint("second", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();

  const ProgramEnd other = Train("third", {plan, "train.microbatch=1"});
  EXPECT_EQ(other.exit_code, 2) << other.errors;
  EXPECT_THAT(other.errors, ContainsRegex("^siphon: .*/first/plan.txt:[0-9]+:[0-9]+: microbatch is "
                                          "2, the job's is 1; plan this job again"));
  const ProgramEnd less = Train("third", {plan, "memory.capacity=1100KiB"});
  EXPECT_EQ(less.exit_code, 3) << less.errors;
  EXPECT_THAT(less.errors, ContainsRegex("^siphon: .*/first/plan.txt:[0-9]+:[0-9]+: worker 0 may "
                                         "hold .* by the plan, and .* by the job: the plan does "
                                         "not fit: "));
  const ProgramEnd none = Train("third", {"memory.plan=/nowhere/plan.txt"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.errors,
            "siphon: --set memory.plan: cannot read plan '/nowhere/plan.txt': No such file or "
            "directory\n");
}

TEST_F(PlanFileOfARun, IsWhatThePlanCommandFoundBefore) {
  const ProgramEnd planned = Siphon({"plan", job(), "--set", kCapacity});
  ASSERT_EQ(planned.exit_code, 0) << planned.errors;
  const ProgramEnd first = Train("first", {});
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_THAT(first.errors, HasSubstr("planned as before; "));
  const ProgramEnd second = Train("second", {"memory.known_plans=false"});
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_EQ(PlanOf("first"), PlanOf("second"));
  ExpectNothingLeft();
}

// Also with another learning rate; unless it is told not to.
TEST_F(PlanFileOfARun, IsFollowedByTheNextRunOfTheJob) {
  const ProgramEnd first = Train("first", {});
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const std::string before = "planned as before; ";
  EXPECT_THAT(first.errors, Not(HasSubstr(before)));
  const ProgramEnd second = Train("second", {"train.learning_rate=0.1", "train.steps=2"});
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_THAT(second.errors, HasSubstr(before));
  EXPECT_EQ(PlanOf("second"), PlanOf("first"));
  const ProgramEnd third = Train("third", {"memory.known_plans=false"});
  EXPECT_EQ(third.exit_code, 0) << third.errors;
  EXPECT_THAT(third.errors, Not(HasSubstr(before)));
  EXPECT_EQ(PlanOf("third"), PlanOf("first"));
  EXPECT_EQ(RunCheckpoint("third", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace siphon
