#include "planner/lower_schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

std::string Lowered(absl::string_view text) {
  const absl::StatusOr<Schedule> lowered = InsertCommunication(ParsedSchedule(text));
  return lowered.ok() ? ToString(*lowered) : std::string(lowered.status().message());
}

TEST(InsertCommunication, PutsSendsBehindTheirMakersAndReceivesWhereTheReceiverIsThen) {
  EXPECT_EQ(Lowered("0F0 0F1 0B0 0B1\n"
                    "1F0 1B0 1F1 1B1\n"),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1\n");
}

TEST(InsertCommunication, SendsTheGradientBehindTheInputPartOfASplitBackward) {
  EXPECT_EQ(Lowered("0F0 0I0 0W0\n"
                    "1F0 1I0 1W0\n"),
            "0F0 0SEND_F0 0RECV_B0 0I0 0W0\n"
            "1RECV_F0 1F0 1I0 1SEND_B0 1W0\n");
}

TEST(InsertCommunication, SendsNothingBetweenStagesOfOneWorker) {
  EXPECT_EQ(Lowered("0F0 1F0 1B0 0B0\n"), "0F0 1F0 1B0 0B0\n");
  EXPECT_EQ(Lowered("0F0 3F0 3B0 0B0\n"
                    "1F0 2F0 2B0 1B0\n"),
            "0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 0B0\n"
            "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0\n");
}

TEST(InsertCommunication, RefusesAScheduleThatHasCommunicationAlready) {
  EXPECT_EQ(
      Lowered("0F0 0SEND_F0\n1F0\n"),
      "messages can be inserted among compute actions only, but worker 0 has 0SEND_F0, a message "
      "already");
}

TEST(InsertCommunication, TreatsACompoundCellAsOne) {
  EXPECT_EQ(Lowered("0F0 0F1 0B0 0B1\n"
                    "1F0 (1F1;1B0)OVERLAP_F_B 1B1\n"),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "1RECV_F0 1F0 1RECV_F1 (1F1;1B0)OVERLAP_F_B 1SEND_B0 1B1 1SEND_B1\n");
}

TEST(InsertCommunication, NamesWhoeverCanNeverRun) {
  EXPECT_EQ(Lowered("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n"),
            "worker 0 can never run 0B0: the workers wait for each other's compute actions");
}

// Two stages a worker in a loop, three microbatches: worker 1 receives for stage 1 and stage 3 in
// the order in which worker 0 sends, though worker 1 wants them in another.
TEST(InsertCommunication, KeepsOneOrderOfMessagesWhateverTheReceiverWantsFirst) {
  const std::string text =
      "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
      "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n";
  const absl::StatusOr<Schedule> lowered = InsertCommunication(ParsedSchedule(text));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(Verdict(*lowered), "valid");
}

TEST(MergeBackward, JoinsAnInputPartWithItsWeightPartRightBehind) {
  EXPECT_EQ(ToString(MergeBackward(ParsedSchedule("0F0 0F1 0I0 0W0 0I1 0F2 0W1 0I2 0W2"))),
            "0F0 0F1 0B0 0I1 0F2 0W1 0B2\n");
}

TEST(AppendOptimizerStep, EndsEveryProgramWithNormAndSteps) {
  const Schedule schedule = ParsedSchedule("0F0 0B0\n1F0 1B0\n2F0 2B0\n");
  EXPECT_EQ(ToString(AppendOptimizerStep(schedule, {StageId(0), StageId(2)})),
            "0F0 0B0 0REDUCE_GRAD 0REDUCE_NORM 0STEP\n"
            "1F0 1B0 1REDUCE_NORM 1STEP\n"
            "2F0 2B0 2REDUCE_GRAD 2REDUCE_NORM 2STEP\n");
}

TEST(AppendOptimizerStep, TakesOneNormAWorkerAndOneStepAStage) {
  const Schedule schedule = ParsedSchedule("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0\n");
  EXPECT_EQ(ToString(AppendOptimizerStep(schedule, {StageId(0), StageId(3)})),
            "0F0 3F0 3B0 0B0 0REDUCE_GRAD 3REDUCE_GRAD 0REDUCE_NORM 0STEP 3STEP\n"
            "1F0 2F0 2B0 1B0 1REDUCE_NORM 1STEP 2STEP\n");
}

TEST(AppendOptimizerStep, ReportsTheNormBehindStepsThatDoNotNeedIt) {
  const Schedule schedule = ParsedSchedule("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0\n");
  const Schedule stepped = AppendOptimizerStep(schedule, {StageId(0)}, NormPlace::kBehindSteps);
  EXPECT_EQ(ToString(stepped),
            "0F0 3F0 3B0 0B0 0REDUCE_GRAD 0STEP 3STEP 0REDUCE_NORM\n"
            "1F0 2F0 2B0 1B0 1STEP 2STEP 1REDUCE_NORM\n");
  EXPECT_EQ(Verdict(AppendOptimizerStep(ParsedSchedule("0F0 0B0\n"), {}, NormPlace::kBehindSteps)),
            "valid");
}

TEST(AppendOptimizerStep, LeavesStepsThatComeJustInTime) {
  const Schedule schedule = ParsedSchedule("0F0 1F0 1B0 1STEP 0B0 0STEP\n");
  EXPECT_EQ(ToString(AppendOptimizerStep(schedule, {})),
            "0F0 1F0 1B0 1STEP 0B0 0STEP 0REDUCE_NORM\n");
  EXPECT_EQ(Verdict(AppendOptimizerStep(schedule, {})), "valid");
  // Gradients of a parameter used in both stages are complete only when both backwards are done.
  EXPECT_EQ(ToString(AppendOptimizerStep(schedule, {StageId(0), StageId(1)})),
            "0F0 1F0 1B0 0B0 0REDUCE_GRAD 1REDUCE_GRAD 0REDUCE_NORM 0STEP 1STEP\n");
}

TEST(AppendOptimizerStep, GivesNoStepToAStageWithUpdates) {
  EXPECT_EQ(ToString(AppendOptimizerStep(ParsedSchedule("0F0 0B0 0UPDATE0\n"), {})),
            "0F0 0B0 0UPDATE0 0REDUCE_NORM\n");
}

}  // namespace
}  // namespace siphon
