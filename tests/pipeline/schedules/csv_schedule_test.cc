#include <gtest/gtest.h>

#include <string>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"

namespace siphon {
namespace {

absl::StatusOr<Schedule> FromCsv(absl::string_view csv, int workers, int chunks, int microbatches) {
  return BuildSchedule("csv", {.workers = workers,
                               .chunks = chunks,
                               .microbatches = microbatches,
                               .options = {.csv = std::string(csv)}});
}

TEST(CsvSchedule, KeepsTheOrderOfTheFile) {
  const absl::StatusOr<Schedule> schedule = FromCsv(
      "0F0,0F1,,0I0,0W0,0I1,0W1\n"
      ",1F0,1B0,1F1,1B1\n",
      2, 1, 2);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(ToString(*schedule),
            "0F0 0F1 0I0 0W0 0I1 0W1\n"
            "1F0 1B0 1F1 1B1\n");
}

TEST(CsvSchedule, LeavesMessagesAndTheEndOfTheStepToLowering) {
  const absl::StatusOr<Schedule> original =
      BuildSchedule("dualpipev", {.workers = 2, .chunks = 2, .microbatches = 5});
  ASSERT_TRUE(original.ok()) << original.status();
  const absl::StatusOr<Schedule> lowered = InsertCommunication(*original);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const absl::StatusOr<Schedule> read =
      FromCsv(ToCsv(AppendOptimizerStep(*lowered, {StageId(0)})), 2, 2, 5);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *original);
}

TEST(CsvSchedule, TakesWorkersWithDifferentNumbersOfStages) {
  const std::string text = "0F0,0B0\n1F0,2F0,2B0,1B0\n";
  const absl::StatusOr<Schedule> schedule = FromCsv(text, 2, 1, 1);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(ToCsv(*schedule), text);
  EXPECT_EQ(StageCount(*schedule), 3);
}

TEST(CsvSchedule, RefusesAFileForAnotherJob) {
  EXPECT_EQ(FromCsv("0F0,0B0\n1F0,1B0\n", 2, 2, 4).status(),
            absl::InvalidArgumentError(
                "schedule csv: the file is for 2 workers, 2 stages and 1 microbatches, but the job "
                "has 2 workers, 4 stages (2 a worker) and 4 microbatches"));
}

TEST(CsvSchedule, RefusesWhatCannotRun) {
  EXPECT_EQ(FromCsv("", 1, 1, 1).status(),
            absl::InvalidArgumentError("schedule csv needs a file to read"));
  EXPECT_EQ(FromCsv("0F0,0X0", 1, 1, 1).status().message().substr(0, 18), "schedule csv: 1:5:");
  EXPECT_EQ(FromCsv("0F0,0B0,0UPDATE0", 1, 1, 1).status(),
            absl::InvalidArgumentError("schedule csv: the file has 0UPDATE0, but schedules from "
                                       "files update their weights at the end of a step"));
  EXPECT_EQ(FromCsv("0F0,0B0,0F1\n", 1, 1, 2).status(),
            absl::InvalidArgumentError(
                "schedule csv: worker 0 lacks 0B1: every microbatch goes backward through every "
                "stage once\n"
                "worker 0: 0F0 0B0 0F1 <-- here"));
}

}  // namespace
}  // namespace siphon
