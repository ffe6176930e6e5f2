#include "planner/schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

TEST(Schedule, ParsesWhatItPrints) {
  const std::string text =
      "0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 0B0 0REDUCE_NORM 0STEP 3STEP\n"
      "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0 1REDUCE_NORM 1STEP 2STEP\n";
  const Schedule schedule = ParsedSchedule(text);
  EXPECT_EQ(ToString(schedule), text);
  EXPECT_EQ(ParsedSchedule(ToString(schedule)), schedule);
  EXPECT_EQ(schedule.microbatches, 1);
  EXPECT_EQ(StageCount(schedule), 4);
  EXPECT_EQ(schedule.worker_of_stage,
            (std::vector<WorkerId>{WorkerId(0), WorkerId(1), WorkerId(1), WorkerId(0)}));
  EXPECT_EQ(StagesOf(schedule, WorkerId(0)), (std::vector<StageId>{StageId(0), StageId(3)}));
  EXPECT_EQ(StagesOf(schedule, WorkerId(1)), (std::vector<StageId>{StageId(1), StageId(2)}));
}

TEST(Schedule, ParsesWindowsLineEndsAndExtraBlanks) {
  EXPECT_EQ(ParsedSchedule("0F0   0B0\r\n1F0\t1B0\r\n"), ParsedSchedule("0F0 0B0\n1F0 1B0"));
}

TEST(Schedule, SaysWhereATextIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the schedule has no actions"},
      {" \n", "the schedule has no actions"},
      {"0F0\n1F0 1F\n", "2:5: action '1F': the microbatch is missing"},
      {"0F0 1F0\n1F1\n", "2:1: 1F1: stage 1 stands in line 1 already; one worker holds a stage"},
      {"0F0\n2F0\n", "stage 1 is missing: stages 0 to 2 need a worker each"},
      {"(0F0;0B0\n", "1:1: cell '(0F0;0B0': a compound cell reads (0F7;7B3)OVERLAP_F_B"},
      {"0F0 (0F1;0B0;0W0)OVERLAP_F_B\n",
       "1:5: cell '(0F1;0B0;0W0)OVERLAP_F_B': a compound cell has two compute actions"},
      {"2000000000F0\n", "stage 0 is missing: stages 0 to 2000000000 need a worker each"},
  };
  for (const auto& [text, message] : cases) {
    const absl::StatusOr<Schedule> parsed = ParseSchedule(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(parsed.status().message()), message);
  }
}

TEST(PeakLiveActivations, CountsFromForwardToBackwardWithBothEnds) {
  EXPECT_EQ(PeakLiveActivations(ParsedSchedule("0F0 0F1 0B0 0F2 0B1 0B2\n"
                                               "1F0 1B0 1F1 1B1 1F2 1B2\n")),
            (std::vector<int>{2, 1}));
}

TEST(PeakLiveActivations, KeepsASplitBackwardUntilItsWeights) {
  EXPECT_EQ(PeakLiveActivations(ParsedSchedule("0F0 0I0 0F1 0I1 0W0 0W1")), std::vector<int>{2});
  EXPECT_EQ(PeakLiveActivations(ParsedSchedule("0F0 0I0 0W0 0F1 0I1 0W1")), std::vector<int>{1});
}

TEST(PeakLiveActivations, CountsEachStageOfAWorker) {
  EXPECT_EQ(PeakLiveActivations(ParsedSchedule("0F0 1F0 0F1 1F1 1B0 0B0 1B1 0B1")),
            std::vector<int>{4});
}

TEST(PeakLiveActivations, IsOneWhereNothingGoesBackward) {
  EXPECT_EQ(PeakLiveActivations(ParsedSchedule("0F0 0F1 0F2")), std::vector<int>{1});
}

TEST(PeakLiveActivations, CountsBothMembersOfACompoundCell) {
  EXPECT_EQ(PeakLiveActivations(ParsedSchedule("0F0 0F1 0B0 0F2 0B1 0B2")), std::vector<int>{2});
  EXPECT_EQ(PeakLiveActivations(ParsedSchedule("0F0 0F1 (0B0;0F2)OVERLAP_F_B 0B1 0B2")),
            std::vector<int>{3});
}

TEST(Schedule, ReadsAndWritesCompoundCells) {
  const std::string text = "0F0 (0F1;3B0)OVERLAP_F_B 3F0\n1F0 2F0\n";
  const Schedule schedule = ParsedSchedule(text);
  ASSERT_EQ(schedule.programs[0].size(), 4u);
  EXPECT_EQ(schedule.programs[0][1].pairing, Pairing::kWithNext);
  EXPECT_EQ(schedule.programs[0][2].pairing, Pairing::kAlone);
  EXPECT_EQ(ToString(schedule), text);
}

TEST(ScheduleCsv, DropsIdleCellsAndThoseOfShardedReplicas) {
  const absl::StatusOr<Schedule> schedule =
      ParseScheduleCsv("0UNSHARD,0F0,,(0F1;0B0)OVERLAP_F_B,0REDUCE_GRAD\r\n,1F0 , 1B0,1RESHARD\n");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(ToString(*schedule), "0F0 (0F1;0B0)OVERLAP_F_B\n1F0 1B0\n");
  EXPECT_EQ(ToCsv(*schedule), "0F0,(0F1;0B0)OVERLAP_F_B\n1F0,1B0\n");
}

TEST(ScheduleCsv, SaysWhereAFileIsWrong) {
  EXPECT_EQ(ParseScheduleCsv("0F0,0B0\n1F0,  1Q0\n").status().message().substr(0, 35),
            "2:7: action '1Q0': unknown kind 'Q'");
  EXPECT_EQ(ParseScheduleCsv(" \n").status().message(), "the schedule has no actions");
}

TEST(PeakWeightVersions, CountsTheNewestAndThoseThatBackwardsComeBackTo) {
  EXPECT_EQ(PeakWeightVersions(ParsedSchedule("0F0 0F1 0B0 0B1")), std::vector<int>{1});
  // Version 0 is used by both forwards; after the first update the second backward still needs it.
  EXPECT_EQ(PeakWeightVersions(ParsedSchedule("0F0 0F1 0B0 0UPDATE0 0B1 0UPDATE1")),
            std::vector<int>{2});
  // Microbatch 2 begins with version 1 while microbatch 1 still needs version 0.
  EXPECT_EQ(PeakWeightVersions(ParsedSchedule(
                "0F0 0F1 0B0 0UPDATE0 0F2 0B1 0UPDATE1 0F3 0B2 0UPDATE2 0B3 0UPDATE3")),
            std::vector<int>{2});
  EXPECT_EQ(PeakWeightVersions(ParsedSchedule("0F0 0B0 0UPDATE0 0F1 0B1 0UPDATE1\n"
                                              "1F0 1F1 1B0 1B1")),
            (std::vector<int>{1, 1}));
}

// Groups of two: microbatches 0 to 3 go by version 0, 4 and 5 by version 1. When UPDATE3 has made
// version 2, nothing comes back to version 0 any more.
TEST(PeakWeightVersions, CountsThoseThatLaterForwardsTakeOneGroupBehind) {
  Schedule schedule = ParsedSchedule(
      "0F0 0F1 0B0 0F2 0B1 0UPDATE1 0F3 0B2 0F4 0B3 0UPDATE3 0F5 0B4 0B5 0UPDATE5\n"
      "1F0 1B0 1F1 1B1 1UPDATE1 1F2 1B2 1F3 1B3 1UPDATE3 1F4 1B4 1F5 1B5 1UPDATE5\n");
  EXPECT_EQ(PeakWeightVersions(schedule), (std::vector<int>{2, 1}));
  schedule.weight_rule = WeightRule::kOneGroupBehind;
  EXPECT_EQ(PeakWeightVersions(schedule), (std::vector<int>{2, 2}));
}

TEST(AccumulationOrder, IsTheOrderOfWeightGradients) {
  const Schedule schedule = ParsedSchedule("0F0 0F1 0I0 0I1 0W1 0W0\n1F0 1F1 1B0 1B1");
  EXPECT_EQ(AccumulationOrder(schedule, StageId(0)),
            (std::vector<MicrobatchId>{MicrobatchId(1), MicrobatchId(0)}));
  EXPECT_EQ(AccumulationOrder(schedule, StageId(1)),
            (std::vector<MicrobatchId>{MicrobatchId(0), MicrobatchId(1)}));
}

}  // namespace
}  // namespace siphon
