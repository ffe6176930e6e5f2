// Whole runs in 16 bits against the reference: job files, checkpoints, metrics; across a save and a
// resume with other stages, schedules and strategies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/run/job/prepare_job.h"
#include "planner/status.h"
#include "tests/conformance/job_runs.h"
#include "tests/support/same_bits.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Of what keeping everything takes beside rings: too little for it.
constexpr int kTightPercent = 93;

absl::StatusOr<Bytes> TightCapacity(const JobConfig& kept) {
  SIPHON_ASSIGN_OR_RETURN(const PreparedJob prepared, PrepareJob(kept, {}));
  SIPHON_ASSIGN_OR_RETURN(
      const MemoryEstimate estimate,
      EstimateJob({prepared.job, prepared.model.spec, prepared.plan}, Accounting::kRuntime));
  Bytes capacity;
  for (const MemoryByKind& worker : estimate.workers) {
    const Bytes rings = worker[MemoryKind::kCommunication];
    capacity =
        std::max(capacity, rings + Bytes((Total(worker) - rings).value / 100 * kTightPercent));
  }
  return capacity;
}

JobConfig Resumed(const JobConfig& job, int stages, const std::string& schedule,
                  const std::string& strategy) {
  JobConfig resumed = job;
  resumed.pipeline.stages = stages;
  resumed.pipeline.schedule = schedule;
  resumed.memory.strategy = strategy;
  resumed.checkpoint.resume = SavedCheckpoint(job);
  resumed.output.directory += absl::StrCat("-", stages, "-", schedule, "-", strategy);
  return resumed;
}

TEST(PrecisionRuns, Bf16UnderMpirunTrainsLikeOneProcess) {
  const ScratchFolder folder;
  JobConfig job = SmallTextJob(folder, "gpt", "gpt");
  job.pipeline.stages = 4;
  job.train.precision = "bf16";
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);

  const JobConfig resumed = Resumed(job, 2, "zb_h1", "keep");
  const absl::Status went_on = TrainWithProgram(resumed, folder);
  ASSERT_TRUE(went_on.ok()) << went_on;
  ExpectSame(*expected, resumed, kSavedStep);
}

class PrecisionResume : public testing::TestWithParam<std::string> {};

// What moves state brings masters in and out around a checkpoint as well.
TEST_P(PrecisionResume, GoesOnWithOtherStagesAndStrategies) {
  const ScratchFolder folder;
  JobConfig job = SmallTextJob(folder, "whole", "bert");
  job.pipeline.stages = 4;
  job.pipeline.schedule = "gpipe";
  job.train.precision = GetParam();
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto trained = TrainInProcess(job);
  ASSERT_TRUE(trained.ok()) << trained.status();
  ExpectSame(*expected, job, 0);
  for (const auto& [stages, schedule, strategy] : {std::tuple{2, "1f1b", "weight_offload"},
                                                   {1, "gpipe", "optimizer_offload"},
                                                   {2, "gpipe", "recompute"},
                                                   {2, "dapple", "l2l"},
                                                   {4, "1f1b", "auto"}}) {
    SCOPED_TRACE(absl::StrCat(stages, " stages, ", schedule, ", ", strategy));
    const JobConfig kept = Resumed(job, stages, schedule, "keep");
    const auto kept_on = TrainInProcess(kept);
    ASSERT_TRUE(kept_on.ok()) << kept_on.status();
    EXPECT_EQ(kept_on->warnings, std::vector<std::string>{});
    ExpectSame(*expected, kept, kSavedStep);
    const auto capacity = TightCapacity(kept);
    ASSERT_TRUE(capacity.ok()) << capacity.status();

    JobConfig tight = Resumed(job, stages, schedule, strategy);
    tight.memory.capacity = {*capacity};
    const auto went_on = TrainInProcess(tight);
    ASSERT_TRUE(went_on.ok()) << went_on.status();
    ExpectSame(*expected, tight, kSavedStep);
    const auto left = ReadResult(tight);
    ASSERT_TRUE(left.ok()) << left.status();
    EXPECT_TRUE(left->recompute_seconds > 0 || left->out_to_host + left->out_to_peers > Bytes())
        << "nothing left";
    EXPECT_LE(left->largest_peak, tight.memory.capacity[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, PrecisionResume, testing::Values("bf16", "fp16"),
                         [](const auto& info) { return info.param; });

// From a checkpoint of another precision a run starts with the masters, and says what that means.
TEST(PrecisionRuns, ResumingInAnotherPrecisionSaysThatBitsWillDiffer) {
  const ScratchFolder folder;
  JobConfig job = SmallTextJob(folder, "whole", "gpt");
  job.pipeline.stages = 2;
  job.train.precision = "bf16";
  ASSERT_TRUE(TrainInProcess(job).ok());
  const auto narrow = ReadResult(job);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  JobConfig wide = Resumed(job, 2, "1f1b", "keep");
  wide.train.precision = "fp32";
  const auto went_on = TrainInProcess(wide);
  ASSERT_TRUE(went_on.ok()) << went_on.status();
  EXPECT_THAT(went_on->warnings,
              ElementsAre(HasSubstr("train.precision is fp32 and was bf16 when the checkpoint was "
                                    "written: results will not be bitwise")));
  const auto other = ReadResult(wide);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(SameBits(narrow->parameters, other->parameters));
  for (size_t step = 0; step < other->losses.size(); ++step) {
    EXPECT_NEAR(other->losses[step], narrow->losses[kSavedStep + step], 0.05);
  }
}

}  // namespace
}  // namespace siphon
