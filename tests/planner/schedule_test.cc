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
      {"0F0\n1F0 1F\n", "line 2 action 2: action '1F': the microbatch is missing"},
      {"0F0 1F0\n1F1\n",
       "line 2 action 1: 1F1: stage 1 stands in line 1 already; one worker holds a stage"},
      {"0F0\n2F0\n", "stage 1 is missing: stages 0 to 2 need a worker each"},
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

}  // namespace
}  // namespace siphon
