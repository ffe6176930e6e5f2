#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/plan_report.h"
#include "tests/launch/commands/plan_fixture.h"

namespace siphon {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SettingsOfWhatIf, BeginWhereAKeyFollowsAComma) {
  EXPECT_THAT(SettingsOfWhatIf("memory.capacity=24GB"), ElementsAre("memory.capacity=24GB"));
  EXPECT_THAT(SettingsOfWhatIf("memory.capacity=24GB,pipeline.stages=4"),
              ElementsAre("memory.capacity=24GB", "pipeline.stages=4"));
  EXPECT_THAT(SettingsOfWhatIf("memory.capacity=[6MiB,20MiB],train.microbatch=2"),
              ElementsAre("memory.capacity=[6MiB,20MiB]", "train.microbatch=2"));
  EXPECT_THAT(SettingsOfWhatIf("data.path=a,b.c=d.txt,x"),
              ElementsAre("data.path=a", "b.c=d.txt,x"));
  EXPECT_THAT(SettingsOfWhatIf("data.path=a,b=c,.d=e"), ElementsAre("data.path=a,b=c,.d=e"));
}

TEST_F(PlanCommand, PlansAColumnWithSeveralSettings) {
  const std::string job = Write(kSmallJob);
  const std::string both = "pipeline.schedule=1f1b,train.microbatch=2";
  const json plan = Json({job, "--what-if", both}, kExitDone);
  const json alone =
      Json({job, "--set", "pipeline.schedule=1f1b", "--set", "train.microbatch=2"}, kExitDone);
  EXPECT_EQ(plan["what_if"][0]["set"], both);
  EXPECT_EQ(plan["what_if"][0]["step_seconds"], alone["step_seconds"]);
}

// What does not fit has no step, whatever keeping everything would take.
TEST_F(PlanCommand, SaysWhyAColumnDoesNotFit) {
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> flags = {job, "--what-if",
                                          "memory.strategy=keep," + Capacity(job, 60)};
  const json plan = Json(flags, kExitDone)["what_if"][0];
  EXPECT_EQ(plan["fits"], false);
  for (const char* of_a_step : {"step_seconds", "tokens_per_second", "bubble_fraction", "gap"}) {
    EXPECT_TRUE(plan[of_a_step].is_null()) << of_a_step;
  }
  EXPECT_THAT(plan["reason"].get<std::string>(), HasSubstr("needs"));
  EXPECT_EQ(plan["smallest_fix"]["set"], json::array({"memory.strategy=auto"}));
  const CommandEnd text = Run(flags);
  EXPECT_THAT(text.out, ContainsRegex("\nstep time +[0-9.]+ ms +-\n"));
  EXPECT_THAT(text.out, ContainsRegex("\ngap +[0-9.]+ % +-\n"));
  EXPECT_THAT(text.out, HasSubstr(" does not fit: worker "));
  EXPECT_THAT(text.out,
              HasSubstr("smallest change that fits beside it: --set memory.strategy=auto  ("));
}

// Some of what cannot be is found only where it is planned; what has been planned is told all the
// same.
TEST_F(PlanCommand, ShowsThePlanWhereAChangeOfItCannotBePlanned) {
  const CommandEnd end = Run({Write(kSmallJob), "--set", "topology.name=dgx1_v100", "--what-if",
                              "memory.strategy=nvme_swap", "--what-if", "train.microbatch=2"});
  EXPECT_EQ(end.code, kExitBadInput);
  EXPECT_EQ(
      end.err,
      "siphon: --what-if memory.strategy=nvme_swap: --set memory.strategy: nvme_swap needs an "
      "NVMe drive, but topology dgx1_v100 has none; write memory.nvme_directory, which is "
      "taken to be on one\n");
  EXPECT_THAT(end.out, ContainsRegex("\nstep time +[0-9.]+ ms +[0-9.]+ ms\n"));
  EXPECT_THAT(end.out, ContainsRegex("\nwhat if +as it is +train.microbatch=2\n"));
}

TEST_F(PlanCommand, HasNoGapWhereNothingFits) {
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> flags = {job, "--set", Capacity(job, 60), "--strategy", "keep"};
  const json plan = Json(flags, kExitDoesNotFit);
  EXPECT_TRUE(plan["gap"].is_null());
  EXPECT_TRUE(plan["step_seconds"].is_null());
  EXPECT_GT(plan["kept_step_seconds"], 0.0);
  EXPECT_THAT(Run(flags).out, Not(HasSubstr("step time")));
}

}  // namespace
}  // namespace siphon
