#include "planner/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

// As a person may have typed it: no more than what is needed.
constexpr absl::string_view kShortPlan =
    "siphon plan 1\n"
    "job\n"
    "  microbatch: 4\n"
    "  global_batch: 8\n"
    "  costs: unit\n"
    "stage 0\n"
    "  worker: 0\n"
    "  layers: 0 to 1\n"
    "  forward: 1.5ms\n"
    "stage 1\n"
    "  worker: 1\n"
    "  layers: 2 to 2\n"
    "training\n"
    "  worker 0: 0F0 0F1 0B0 0B1\n"
    "  worker 1: 1F0 1B0 1F1 1B1\n";

PlanText Parsed(absl::string_view text) {
  absl::StatusOr<PlanText> plan = ParsePlanText(text);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : PlanText{};
}

// The message for the short plan after one replacement, or "accepted".
std::string AfterEdit(absl::string_view from, absl::string_view to) {
  const std::string edited = absl::StrReplaceAll(kShortPlan, {{from, to}});
  EXPECT_NE(edited, kShortPlan) << from;
  const auto plan = ParsePlanText(edited);
  return plan.ok() ? "accepted" : std::string(plan.status().message());
}

TEST(PlanText, IsReadAsAPersonWritesIt) {
  const PlanText plan = Parsed(kShortPlan);
  EXPECT_EQ(plan.microbatch, 4);
  EXPECT_EQ(plan.global_batch, 8);
  EXPECT_EQ(plan.costs, kUnitCosts);
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].layers, (StageRange{0, 2}));
  EXPECT_EQ(plan.stages[0].cost.forward, Nanos(1'500'000));
  EXPECT_EQ(plan.stages[1].worker, WorkerId(1));
  EXPECT_EQ(plan.training, ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"));
  EXPECT_EQ(plan.workers.size(), 2u);
  EXPECT_TRUE(plan.evaluation.programs.empty());
}

TEST(PlanText, IgnoresCommentsBlankLinesAndLineEndsOfWindows) {
  std::string text = absl::StrReplaceAll(
      kShortPlan, {{"\n", "  # why not\r\n\r\n   # a line of its own\n"}, {"job", "job\t"}});
  EXPECT_EQ(Parsed(text), Parsed(kShortPlan));
}

TEST(PlanText, KeepsCompoundCellsCapacitiesAndLinks) {
  PlanText plan = Parsed(kShortPlan);
  plan.training = ParsedSchedule("0F0 (0F1;0B0)OVERLAP_F_B 0B1\n1F0 1I0 1W0 1F1 1B1\n");
  plan.workers = {{.capacity = Bytes(int64_t{512} << 20)}, {.communication = Bytes(12345)}};
  plan.link_latency = Nanos(1'230);
  plan.link_rate = BytesPerSecond(12'500'000'001);
  plan.shared_parameters = {{"wte:weight", {StageId(0), StageId(1)}}};
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("worker 0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("capacity:           512MiB\n"), std::string::npos) << text;
  EXPECT_NE(text.find("link_rate:          12.500000001GB/s\n"), std::string::npos) << text;
  EXPECT_EQ(Parsed(text), plan);
}

TEST(PlanText, KeepsWhatWorkersOfOneMachineShare) {
  PlanText plan = Parsed(kShortPlan);
  EXPECT_EQ(ToString(plan).find("cores_together"), std::string::npos);
  EXPECT_EQ(ToString(plan).find("whole_backward"), std::string::npos);
  plan.copy_rate = BytesPerSecond(8'000'000'000);
  plan.message_room = 2;
  plan.cores_together = {1000, 1740};
  plan.stages[0].cost.whole_backward = Nanos(1'500);
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("copy_rate:          8GB/s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("message_room:       2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cores_together:     1000, 1740\n"), std::string::npos) << text;
  EXPECT_NE(text.find("whole_backward:     1.5us\n"), std::string::npos) << text;
  EXPECT_EQ(Parsed(text), plan);
  const std::string wrong = absl::StrReplaceAll(text, {{"1000, 1740", "1000, 0"}});
  EXPECT_THAT(std::string(ParsePlanText(wrong).status().message()), testing::HasSubstr("'0'"));
}

TEST(PlanText, KeepsTheRuleByWhichMicrobatchesTakeWeights) {
  PlanText plan = Parsed(kShortPlan);
  EXPECT_EQ(ToString(plan).find("weight_rule"), std::string::npos);
  plan.training.weight_rule = WeightRule::kOneGroupBehind;
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("weight_rule:        one_group_behind\n"), std::string::npos) << text;
  EXPECT_EQ(Parsed(text), plan);
  const std::string wrong = absl::StrReplaceAll(text, {{"one_group_behind", "two"}});
  EXPECT_THAT(std::string(ParsePlanText(wrong).status().message()),
              testing::EndsWith("weight_rule is 'two'; the only rule to name is one_group_behind"));
}

TEST(PlanText, ReadsBackWhatItPrintsWhateverTheNumbers) {
  std::mt19937_64 random(20260211);
  const auto number = [&random] {  // of every magnitude
    return static_cast<int64_t>(random() >> (1 + random() % 63));
  };
  for (int round = 0; round < 200; ++round) {
    PlanText plan = Parsed(kShortPlan);
    plan.microbatch = 1 + number() % 1000;
    plan.training.replicas = 1 + static_cast<int>(number() % 3);
    plan.global_batch = plan.microbatch * 2 * plan.training.replicas;
    plan.link_rate = BytesPerSecond(number());
    plan.copy_rate = BytesPerSecond(number());
    plan.message_room = static_cast<int>(number() % 100);
    for (int64_t core = number() % 4; core > 0; --core) {
      plan.cores_together.push_back(1 + number() % 100'000);
    }
    for (PlanStage& stage : plan.stages) {
      stage.cost = {.forward = Nanos(number()),
                    .input_backward = Nanos(number()),
                    .weight_backward = Nanos(number()),
                    .whole_backward = Nanos(number()),
                    .step = Nanos(number()),
                    .parameters = Bytes(number()),
                    .stash = Bytes(number()),
                    .backward_workspace = Bytes(number())};
    }
    plan.workers[1].capacity = Bytes(number());
    EXPECT_EQ(Parsed(ToString(plan)), plan) << ToString(plan);
  }
}

TEST(PlanText, NamesTheLineAndColumnOfWhatIsWrong) {
  EXPECT_EQ(AfterEdit("siphon plan 1", "worker 0"),
            "1:1: 'worker 0' is not the first line of a plan file; it is 'siphon plan 1'");
  EXPECT_EQ(AfterEdit("forward: 1.5ms", "forward: 1.5"),
            "9:12: '1.5' has no unit; known: ns, us, ms, s, min, h");
  EXPECT_EQ(AfterEdit("forward: 1.5ms", "forward 1.5ms"),
            "9:3: 'forward 1.5ms' has no colon; write 'key: value'");
  EXPECT_EQ(AfterEdit("  microbatch: 4", "  microbatch: -4"),
            "3:15: '-4' is not a whole number from 1 to 9223372036854775807");
  EXPECT_EQ(AfterEdit("  layers: 0 to 1", "  layers: 0-1"),
            "8:11: '0-1' are no layers; write the first and the last: '0 to 2'");
  EXPECT_EQ(AfterEdit("stage 1", "stage 2"), "10:7: stage 2 is out of order; the next one is 1");
  EXPECT_EQ(AfterEdit("training", "trainings"),
            "13:1: unknown section 'trainings'; known: job, worker, stage, shared parameters, "
            "training, evaluation (lines of a section are indented)");
  EXPECT_EQ(AfterEdit("  costs: unit\n", ""), "2:1: 'job' has no line 'costs: '; it needs one");
  EXPECT_EQ(AfterEdit("  costs: unit\n", "  costs: unit\n  costs: unit\n"),
            "6:3: 'costs' stands twice in 'job'");
  EXPECT_EQ(AfterEdit("global_batch: 8", "global_batch: 12"),
            "2:1: global_batch is 12, but the programs have 2 microbatches of 4");
  EXPECT_EQ(AfterEdit("  layers: 2 to 2", "  layers: 3 to 3"),
            "10:1: stage 1 begins with layer 3; the next one is 2");
}

TEST(PlanText, NamesThePlaceInAProgram) {
  EXPECT_EQ(AfterEdit("1F0 1B0 1F1", "1F0 1X0 1F1").substr(0, 44),
            "15:17: action '1X0': unknown kind 'X'; known");
  EXPECT_EQ(AfterEdit("worker 0: 0F0", "worker 0: 1F0"),
            "15:13: 1F0: stage 1 stands in line 14 already; one worker holds a stage");
  EXPECT_EQ(AfterEdit("worker 1: 1F0 1B0 1F1 1B1", "worker 1: 2F0 2B0 2F1 2B1"),
            "13:1: stage 1 is missing: stages 0 to 2 need a worker each");
  EXPECT_EQ(AfterEdit("  worker 1: 1F0", "  worker 2: 1F0"),
            "15:3: 'worker 2' where the program of worker 1 belongs; write 'worker 1: ' and its "
            "actions");
  EXPECT_EQ(AfterEdit("  worker: 1", "  worker: 0"),
            "11:11: stage 1 is on worker 0, but its actions are in the program of worker 1");
  EXPECT_EQ(AfterEdit("training\n", "worker 7\n  capacity: 1GiB\ntraining\n"),
            "13:1: there is no 'worker 7'; the programs are of 2");
}

TEST(PlanText, RefusesWhatIsNoPlan) {
  for (const absl::string_view text :
       {"", "\n\n", "# siphon plan 1\n", "siphon plan 1", "siphon plan 1\n  key: value\n",
        "siphon plan 1\njob\n", "siphon plan 1\nworker 999999999\n",
        "siphon plan 1\nstage 2147483647\n", "\x01\x02:\xff"}) {
    EXPECT_EQ(ParsePlanText(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(PlanText, TakesLongTextsInLinearTime) {
  // Would take minutes, or all memory, if anything looked at all that came before.
  std::string many_sections = "siphon plan 1\njob\n";
  for (int worker = 0; worker < 60'000; ++worker) {
    absl::StrAppend(&many_sections, "worker ", worker, "\n  capacity: 1B\n");
  }
  EXPECT_FALSE(ParsePlanText(many_sections).ok());
  std::string many_shared = "siphon plan 1\nshared parameters\n";
  for (int name = 0; name < 60'000; ++name) absl::StrAppend(&many_shared, "  p", name, ": 0\n");
  EXPECT_FALSE(ParsePlanText(many_shared).ok());
  std::string sparse_programs(500'000, '\n');
  EXPECT_FALSE(ParsePlanText(absl::StrCat("siphon plan 1\njob\n  microbatch: 1\n  global_batch: 1\n"
                                          "  costs: unit\ntraining",
                                          sparse_programs, "  worker 0: 0F0\n"))
                   .ok());
}

}  // namespace
}  // namespace siphon
