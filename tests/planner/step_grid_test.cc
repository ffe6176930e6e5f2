#include "planner/step_grid.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/lower_schedule.h"

namespace siphon {
namespace {

Schedule Parsed(absl::string_view text) {
  absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *schedule : Schedule{};
}

StepGrid Drawn(absl::string_view text, const StepCosts& costs = {}) {
  absl::StatusOr<StepGrid> grid = DrawStepGrid(Parsed(text), costs);
  EXPECT_TRUE(grid.ok()) << grid.status();
  return grid.ok() ? *grid : StepGrid{};
}

// "0F0[0,1) 0B0[3,5)", one line a worker.
std::string TextOf(const StepGrid& grid) {
  std::string text;
  for (const std::vector<GridCell>& row : grid.rows) {
    for (const GridCell& cell : row) {
      absl::StrAppend(&text, &cell == &row.front() ? "" : " ");
      absl::StrAppend(&text, ToString(cell.action), "[", cell.begin, ",", cell.end, ")");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

TEST(StepGrid, OneForwardOneBackwardByHand) {
  const StepGrid grid = Drawn(
      "0F0 0F1 0B0 0F2 0B1 0B2\n"
      "1F0 1B0 1F1 1B1 1F2 1B2\n");
  EXPECT_EQ(TextOf(grid),
            "0F0[0,1) 0F1[1,2) 0B0[4,6) 0F2[6,7) 0B1[7,9) 0B2[10,12)\n"
            "1F0[1,2) 1B0[2,4) 1F1[4,5) 1B1[5,7) 1F2[7,8) 1B2[8,10)\n");
  EXPECT_EQ(grid.steps, 12);
  EXPECT_DOUBLE_EQ(BubbleFraction(grid), 6.0 / 24);
  EXPECT_EQ(InnerIdle(grid), (std::vector<int>{3, 0}));
  EXPECT_DOUBLE_EQ(InnerIdleFraction(grid), 3.0 / 24);
}

TEST(StepGrid, InputGradientsGoOnBeforeTheirWeightGradients) {
  const StepGrid grid = Drawn(
      "0F0 0I0 0W0\n"
      "1F0 1I0 1W0\n",
      {.forward = 2, .backward_input = 3, .backward_weight = 4});
  EXPECT_EQ(TextOf(grid),
            "0F0[0,2) 0I0[7,10) 0W0[10,14)\n"
            "1F0[2,4) 1I0[4,7) 1W0[7,11)\n");
}

TEST(StepGrid, MembersOfACompoundCellRunInSequence) {
  const StepGrid grid = Drawn(
      "0F0 0F1 0B0 0B1\n"
      "1F0 (1F1;1B0)OVERLAP_F_B 1B1\n");
  EXPECT_EQ(TextOf(grid),
            "0F0[0,1) 0F1[1,2) 0B0[5,7) 0B1[7,9)\n"
            "1F0[1,2) 1F1[2,3) 1B0[3,5) 1B1[5,7)\n");
}

TEST(StepGrid, ActionsOfNoDurationTakeNoRoom) {
  const StepGrid grid = Drawn("0F0 0B0 0UPDATE0 0F1 0B1 0UPDATE1\n");
  EXPECT_EQ(TextOf(grid), "0F0[0,1) 0B0[1,3) 0F1[3,4) 0B1[4,6)\n");
  EXPECT_EQ(BubbleFraction(grid), 0);
  EXPECT_EQ(InnerIdleFraction(grid), 0);
}

TEST(StepGrid, AShareOfNothingIsNothing) {
  EXPECT_EQ(BubbleFraction({}), 0);
  EXPECT_EQ(InnerIdleFraction({}), 0);
}

TEST(StepGrid, NamesTheWorkerThatStandsStillForEver) {
  EXPECT_EQ(
      DrawStepGrid(Parsed("0F0 0B1 0F1 0B0\n1F0 1B0 1F1 1B1\n")).status(),
      absl::FailedPreconditionError("worker 0 can never run 0B1: the workers wait for each other\n"
                                    "worker 0: 0F0 0B1 <-- here 0F1 0B0\n"
                                    "worker 1: 1F0 1B0 1F1 1B1"));
  Schedule broken = Parsed("0F0 0B0\n");
  broken.programs[0][0].stage = StageId(5);
  EXPECT_EQ(DrawStepGrid(broken).status(),
            absl::FailedPreconditionError("worker 0 has 5F0, but stages are 0 to 0\n"
                                          "worker 0: 5F0 <-- here 0B0"));
}

TEST(LoweredGrid, CountsMessagesAsStepsByHand) {
  const absl::StatusOr<Schedule> lowered = InsertCommunication(Parsed("0F0 0B0\n1F0 1B0\n"));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const absl::StatusOr<StepGrid> grid = DrawLoweredGrid(*lowered);
  ASSERT_TRUE(grid.ok()) << grid.status();
  // A later worker sees in the same step what an earlier one has done; an earlier one that stood
  // sees it on its second try.
  EXPECT_EQ(TextOf(*grid),
            "0F0[0,1) 0SEND_F0[1,2) 0RECV_B0[4,5) 0B0[5,6)\n"
            "1RECV_F0[1,2) 1F0[2,3) 1B0[3,4) 1SEND_B0[4,5)\n");
  EXPECT_EQ(CountSteps(*lowered).value(), 6);
}

TEST(LoweredGrid, NamesTheMessageThatNeverComes) {
  EXPECT_EQ(CountSteps(Parsed("0F0 0RECV_B0 0B0 0SEND_F0\n1RECV_F0 1F0 1B0 1SEND_B0\n")).status(),
            absl::FailedPreconditionError(
                "worker 0 can never run 0RECV_B0: the workers wait for each other\n"
                "worker 0: 0F0 0RECV_B0 <-- here 0B0 0SEND_F0\n"
                "worker 1: 1RECV_F0 1F0 1B0 1SEND_B0"));
}

}  // namespace
}  // namespace siphon
