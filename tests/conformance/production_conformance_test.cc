// The whole program against the reference: job file, data, planning, workers, metrics and
// checkpoints; as threads of one process, and under mpirun as users run it; also across a save and
// a resume with other stages and another schedule.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "tests/conformance/job_runs.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/same_bits.h"

namespace siphon {
namespace {

TEST(ProgramConformance, GptOnFourWorkersUnderMpirunTrainsLikeOneProcess) {
  const ScratchFolder folder;
  JobConfig job = SmallTextJob(folder, "gpt", "gpt");
  job.pipeline.stages = 4;
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);

  // And on from the middle of it, with half the workers and two chunks on each.
  JobConfig resumed = job;
  resumed.pipeline.schedule = "interleaved_1f1b";
  resumed.checkpoint.resume = SavedCheckpoint(job);
  resumed.output.directory += "-resumed";
  const absl::Status went_on = TrainWithProgram(resumed, folder);
  ASSERT_TRUE(went_on.ok()) << went_on;
  ExpectSame(*expected, resumed, kSavedStep);
}

// Halves of backwards, compound cells and a fold, from a file that torch wrote.
TEST(ProgramConformance, AScheduleFromAFileUnderMpirunTrainsLikeOneProcess) {
  const ScratchFolder folder;
  JobConfig job = SmallTextJob(folder, "file", "gpt");
  job.pipeline.stages = 4;
  job.pipeline.schedule = "csv";
  job.pipeline.schedule_file = folder.path() + "/dualpipev.csv";
  std::ofstream(job.pipeline.schedule_file)
      << "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
         "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
         "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
         "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n";
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);
}

TEST(ProgramConformance, BertOnThreeWorkersUnderMpirunTrainsLikeOneProcess) {
  const ScratchFolder folder;
  JobConfig job = SmallTextJob(folder, "bert", "bert");
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
  JobConfig job = SmallTextJob(folder, "mlp", "mlp");
  job.pipeline.stages = 8;
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);
}

// A job on four workers that has too little memory to keep all activations.
struct TightJob {
  JobConfig job;   // without a strategy
  JobConfig kept;  // the same with enough memory, done
  JobResult expected;
  JobResult ample;  // of `kept`
};

absl::StatusOr<TightJob> MakeTightJob(const ScratchFolder& folder,
                                      const std::string& transport = "auto",
                                      const std::optional<int>& hidden = std::nullopt) {
  TightJob tight{.job = SmallTextJob(folder, "gpt", "gpt")};
  tight.job.model.hidden = hidden.value_or(tight.job.model.hidden);
  tight.job.pipeline.transport = transport;
  tight.job.pipeline.stages = 4;
  SIPHON_ASSIGN_OR_RETURN(tight.expected, ReferenceResult(tight.job));
  tight.kept = tight.job;
  tight.kept.output.directory += "-kept";
  SIPHON_RETURN_IF_ERROR(TrainWithProgram(tight.kept, folder));
  SIPHON_ASSIGN_OR_RETURN(tight.ample, ReadResult(tight.kept));
  tight.job.memory.capacity = {Bytes(tight.ample.largest_peak.value / 100 * 92)};
  return tight;
}

// Trains within the capacity, and goes on from the middle with enough of it.
JobResult ExpectTrainsAlike(const TightJob& tight, const std::string& strategy,
                            const ScratchFolder& folder) {
  JobConfig job = tight.job;
  job.memory.strategy = strategy;
  job.output.directory += "-" + strategy;
  const absl::Status trained = TrainWithProgram(job, folder);
  EXPECT_TRUE(trained.ok()) << trained;
  if (!trained.ok()) return {};
  ExpectSame(tight.expected, job, 0);
  const auto result = ReadResult(job);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_LE(result->largest_peak, job.memory.capacity[0]);

  JobConfig resumed = tight.kept;
  resumed.checkpoint.resume = SavedCheckpoint(job);
  resumed.output.directory = job.output.directory + "-resumed";
  const absl::Status went_on = TrainWithProgram(resumed, folder);
  EXPECT_TRUE(went_on.ok()) << went_on;
  if (went_on.ok()) ExpectSame(tight.expected, resumed, kSavedStep);
  return *result;
}

TEST(ProgramConformance, ActivationsComputedAgainUnderMpirunTrainLikeOneProcess) {
  const ScratchFolder folder;
  const auto tight = MakeTightJob(folder);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_EQ(tight->ample.recompute_seconds, 0);
  JobConfig refused = tight->job;
  refused.memory.strategy = "keep";
  EXPECT_THAT(std::string(TrainWithProgram(refused, folder).message()),
              testing::HasSubstr("or --set memory.strategy=recompute"));
  const JobResult result = ExpectTrainsAlike(*tight, "recompute", folder);
  EXPECT_GT(result.recompute_seconds, 0);
  EXPECT_EQ(result.out_to_peers + result.out_to_host, Bytes(0));
}

TEST(ProgramConformance, ActivationsParkedElsewhereUnderMpirunTrainLikeOneProcess) {
  const ScratchFolder folder;
  const auto tight = MakeTightJob(folder);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_EQ(tight->ample.out_to_peers + tight->ample.out_to_host, Bytes(0));
  const JobResult peers = ExpectTrainsAlike(*tight, "d2d_swap", folder);
  EXPECT_GT(peers.out_to_peers, Bytes(0));
  EXPECT_EQ(peers.out_to_host, Bytes(0));
  const JobResult host = ExpectTrainsAlike(*tight, "host_swap", folder);
  EXPECT_GT(host.out_to_host, Bytes(0));
  EXPECT_EQ(host.out_to_peers, Bytes(0));
  EXPECT_EQ(host.recompute_seconds + peers.recompute_seconds, 0);
}

TEST(ProgramConformance, ActivationsOnADriveUnderMpirunTrainLikeOneProcess) {
  const ScratchFolder folder;
  const auto tight = MakeTightJob(folder);
  ASSERT_TRUE(tight.ok()) << tight.status();
  const JobResult result = ExpectTrainsAlike(*tight, "nvme_swap", folder);
  EXPECT_GT(result.out_to_drive, Bytes(0));
  EXPECT_EQ(result.out_to_peers + result.out_to_host, Bytes(0));
}

// Weights and optimizer state: layer by layer, and for whole actions; saved in the middle of it.
TEST(ProgramConformance, StateAwayBetweenItsUsesUnderMpirunTrainsLikeOneProcess) {
  const ScratchFolder folder;
  auto tight = MakeTightJob(folder, "auto", /*hidden=*/96);
  ASSERT_TRUE(tight.ok()) << tight.status();
  tight->job.memory.capacity = {Bytes(tight->ample.largest_peak.value / 100 * 80)};
  for (const char* strategy : {"weight_offload", "l2l", "optimizer_offload", "auto"}) {
    SCOPED_TRACE(strategy);
    const JobResult result = ExpectTrainsAlike(*tight, strategy, folder);
    EXPECT_GT(result.out_to_host + result.out_to_peers, Bytes(0));
  }
}

// Senders keep what they sent for as long as no ring takes it.
TEST(ProgramConformance, ActivationsParkedBesideMessagesByMpiTrainLikeOneProcess) {
  const ScratchFolder folder;
  const auto tight = MakeTightJob(folder, "mpi");
  ASSERT_TRUE(tight.ok()) << tight.status();
  const JobResult result = ExpectTrainsAlike(*tight, "d2d_swap", folder);
  EXPECT_GT(result.out_to_peers, Bytes(0));
}

// As on a DGX-1 whose links are slow.
TEST(ProgramConformance, ThrottledLinksUnderMpirunTrainLikeOneProcess) {
  const ScratchFolder folder;
  auto tight = MakeTightJob(folder);
  ASSERT_TRUE(tight.ok()) << tight.status();
  tight->job.topology.name = "dgx1_v100";
  tight->job.topology.throttle = "0.0001";
  const JobResult result = ExpectTrainsAlike(*tight, "d2d_swap", folder);
  EXPECT_GT(result.out_to_peers, Bytes(0));
}

TEST(ProgramConformance, ASingleWorkerTrainsLikeOneProcess) {
  const ScratchFolder folder;
  const JobConfig job = SmallTextJob(folder, "gpt", "gpt");
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::Status trained = TrainWithProgram(job, folder);
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(*expected, job, 0);
}

class ResumeConformance : public testing::TestWithParam<std::string> {};

// What the registry has for a job of these stages; no clipping, which some schedules cannot do.
std::vector<JobConfig> ResumedJobs(const JobConfig& whole, int stages) {
  std::vector<JobConfig> jobs;
  for (const ScheduleEntry& entry : LiveSchedules()) {
    if (stages % entry.chunks != 0) continue;
    const ScheduleShape shape{
        .workers = stages / entry.chunks, .chunks = entry.chunks, .microbatches = 4};
    const bool from_file = entry.name == "csv";
    if (from_file || !BuildLive(entry, shape).has_value()) continue;
    JobConfig job = whole;
    job.pipeline.stages = stages;
    job.pipeline.schedule = entry.name;
    job.checkpoint.resume = SavedCheckpoint(whole);
    job.output.directory += absl::StrCat("-", stages, "-", entry.name);
    jobs.push_back(job);
  }
  return jobs;
}

// Saved at four stages, continued with any other number of them and any schedule. One that adds up
// in another order says so, once, and its bits differ.
TEST_P(ResumeConformance, GoesOnWithAnyStagesAndScheduleAsIfItHadNeverStopped) {
  const ScratchFolder folder;
  JobConfig job = SmallTextJob(folder, "whole", GetParam());
  job.pipeline.stages = 4;
  job.train.clip_norm = 0;
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto trained = TrainInProcess(job);
  ASSERT_TRUE(trained.ok()) << trained.status();
  ExpectSame(*expected, job, 0);

  int other_orders = 0;
  for (const int stages : {1, 2, 8}) {
    for (const JobConfig& resumed : ResumedJobs(job, stages)) {
      SCOPED_TRACE(testing::Message()
                   << "resumed with " << stages << " stages and " << resumed.pipeline.schedule);
      const auto went_on = TrainInProcess(resumed);
      ASSERT_TRUE(went_on.ok()) << went_on.status();
      if (went_on->warnings.empty()) {
        ExpectSame(*expected, resumed, kSavedStep);
        continue;
      }
      ++other_orders;
      EXPECT_EQ(went_on->warnings,
                std::vector<std::string>{absl::StrCat(
                    "schedule ", resumed.pipeline.schedule,
                    " adds up the gradients of microbatches in another order than the run that "
                    "wrote the checkpoint: results will not be bitwise those of that run")});
      const auto other = ReadResult(resumed);
      ASSERT_TRUE(other.ok()) << other.status();
      EXPECT_FALSE(SameBits(expected->parameters, other->parameters));
    }
  }
  EXPECT_GE(other_orders, 1) << "no schedule here adds up in another order";
}

INSTANTIATE_TEST_SUITE_P(Models, ResumeConformance, testing::Values("gpt", "bert", "mlp"),
                         [](const auto& info) { return info.param; });

// A run that is asked to stop earlier and continued by `auto` in the same directory is the
// uninterrupted run.
TEST(ResumedRun, AutoTakesTheNewestCheckpointAndAppendsToTheMetrics) {
  const ScratchFolder folder;
  JobConfig job = SmallTextJob(folder, "run", "gpt");
  job.pipeline.stages = 4;
  job.train.schedule = "constant";  // others depend on the number of steps
  const auto expected = ReferenceResult(job);
  ASSERT_TRUE(expected.ok()) << expected.status();

  JobConfig half = job;
  half.train.steps = kSavedStep;
  const auto trained = TrainInProcess(half);
  ASSERT_TRUE(trained.ok()) << trained.status();
  JobConfig rest = job;
  rest.pipeline.stages = 2;
  rest.checkpoint.resume = "auto";
  const auto went_on = TrainInProcess(rest);
  ASSERT_TRUE(went_on.ok()) << went_on.status();
  ExpectSame(*expected, rest, 0);
}

}  // namespace
}  // namespace siphon
