// The whole program against the reference: job file, data, planning, workers, metrics and
// checkpoints; as threads of one process, and under mpirun as users run it; also across a save and
// a resume with other stages and another schedule.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/build_schedule.h"
#include "tests/conformance/job_runs.h"
#include "tests/support/same_bits.h"

namespace siphon {
namespace {

constexpr int kSavedStep = 3;

void ExpectSame(const JobResult& expected, const JobConfig& job, int first_step) {
  const auto actual = ReadResult(job);
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ(actual->losses.size(), expected.losses.size() - first_step);
  for (size_t index = 0; index < actual->losses.size(); ++index) {
    SCOPED_TRACE(testing::Message() << "step " << first_step + index);
    EXPECT_TRUE(SameBits(expected.losses[first_step + index], actual->losses[index]));
    EXPECT_TRUE(
        SameBits(expected.gradient_norms[first_step + index], actual->gradient_norms[index]));
  }
  EXPECT_TRUE(SameBits(expected.parameters, actual->parameters)) << "parameters";
  EXPECT_TRUE(SameBits(expected.first_moments, actual->first_moments)) << "first moments";
  EXPECT_TRUE(SameBits(expected.second_moments, actual->second_moments)) << "second moments";
}

std::string SavedCheckpoint(const JobConfig& job) {
  return job.output.directory + "/checkpoints/step-0000000" + std::to_string(kSavedStep);
}

TEST(ProgramConformance, GptOnFourWorkersUnderMpirunTrainsLikeOneProcess) {
  const ScratchFolder folder;
  JobConfig job = SmallJob(folder, "gpt", "gpt");
  job.pipeline.stages = 4;
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);

  // And on from the middle of it, with half the workers and every other schedule.
  for (const ScheduleEntry& schedule : ScheduleRegistry()) {
    SCOPED_TRACE("resumed with " + schedule.name);
    JobConfig resumed = job;
    resumed.pipeline.stages = 2;
    resumed.pipeline.schedule = schedule.name;
    resumed.checkpoint.resume = SavedCheckpoint(job);
    resumed.output.directory += "-resumed-" + schedule.name;
    const absl::Status went_on = TrainWithProgram(resumed, folder);
    ASSERT_TRUE(went_on.ok()) << went_on;
    ExpectSame(*expected, resumed, kSavedStep);
  }
}

TEST(ProgramConformance, BertOnThreeWorkersUnderMpirunTrainsLikeOneProcess) {
  const ScratchFolder folder;
  JobConfig job = SmallJob(folder, "bert", "bert");
  job.pipeline.stages = 3;
  job.pipeline.schedule = "gpipe";
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);
}

TEST(ProgramConformance, MlpOnEightWorkersUnderMpirunTrainsLikeOneProcess) {
  const ScratchFolder folder;
  JobConfig job = SmallJob(folder, "mlp", "mlp");
  job.pipeline.stages = 8;
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);
}

TEST(ProgramConformance, ASingleWorkerTrainsLikeOneProcess) {
  const ScratchFolder folder;
  const JobConfig job = SmallJob(folder, "gpt", "gpt");
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);
}

class ResumeConformance : public testing::TestWithParam<std::string> {};

// Saved at four stages, continued with any other number of them.
TEST_P(ResumeConformance, GoesOnWithAnyNumberOfStagesAsIfItHadNeverStopped) {
  const ScratchFolder folder;
  JobConfig job = SmallJob(folder, "whole", GetParam());
  job.pipeline.stages = 4;
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainInProcess(job);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);

  for (const int stages : {1, 2, 8}) {
    for (const ScheduleEntry& schedule : ScheduleRegistry()) {
      SCOPED_TRACE(testing::Message()
                   << "resumed with " << stages << " stages and " << schedule.name);
      JobConfig resumed = job;
      resumed.pipeline.stages = stages;
      resumed.pipeline.schedule = schedule.name;
      resumed.checkpoint.resume = SavedCheckpoint(job);
      resumed.output.directory += absl::StrCat("-", stages, "-", schedule.name);
      const absl::Status went_on = TrainInProcess(resumed);
      ASSERT_TRUE(went_on.ok()) << went_on;
      ExpectSame(*expected, resumed, kSavedStep);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ResumeConformance, testing::Values("gpt", "bert", "mlp"),
                         [](const auto& info) { return info.param; });

// A run that is asked to stop earlier and continued by `auto` in the same directory is the
// uninterrupted run.
TEST(ResumedRun, AutoTakesTheNewestCheckpointAndAppendsToTheMetrics) {
  const ScratchFolder folder;
  JobConfig job = SmallJob(folder, "run", "gpt");
  job.pipeline.stages = 4;
  job.train.schedule = "constant";  // others depend on the number of steps
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();

  JobConfig half = job;
  half.train.steps = kSavedStep;
  const absl::Status trained = TrainInProcess(half);
  ASSERT_TRUE(trained.ok()) << trained;
  JobConfig rest = job;
  rest.pipeline.stages = 2;
  rest.checkpoint.resume = "auto";
  const absl::Status went_on = TrainInProcess(rest);
  ASSERT_TRUE(went_on.ok()) << went_on;
  ExpectSame(*expected, rest, 0);
}

}  // namespace
}  // namespace siphon
