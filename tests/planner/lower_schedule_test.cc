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

TEST(InsertCommunication, PutsSendsBehindTheirMakersAndReceivesBeforeTheirUsers) {
  EXPECT_EQ(Lowered("0F0 0F1 0B0 0B1\n"
                    "1F0 1B0 1F1 1B1\n"),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n");
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
  EXPECT_EQ(Lowered("0F0 0SEND_F0\n1F0\n"),
            "communication can be inserted among compute actions only, but worker 0 has 0SEND_F0");
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

}  // namespace
}  // namespace siphon
