// Whole jobs by the program against one process that trains alone on the same kind of device: 1, 2
// and 4 workers, every strategy, checksums of all that moves, capacities from ample to the least
// that can be planned, a resume on other workers, and workers that are killed.
//
// With SIPHON_GPU=1 on CUDA devices, which workers share where there are fewer; without it on the
// CPU, as ctest runs it, and fewer of them. A job is a case, so that shards share them out evenly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/process/exit_codes.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/gpu/worker_jobs.h"

namespace siphon {
namespace {

using Texts = std::vector<std::string>;
using Counts = std::vector<int>;

// "gpt_on_4"; a case's name has letters, digits and underscores.
std::string NameOf(const std::string& what) {
  std::string name = what;
  for (char& letter : name) {
    if (absl::string_view(" -:").find(letter) != absl::string_view::npos) letter = '_';
  }
  return name;
}

class EveryModel : public WorkerJobs, public testing::WithParamInterface<std::string> {};

TEST_P(EveryModel, TrainsOnOneTwoAndFourWorkersLikeInOneProcess) {
  const JobResult expected = Expected(JobOf(GetParam(), 1));
  for (const int workers : {1, 2, 4}) {
    SCOPED_TRACE(workers);
    Trains(JobOf(GetParam(), workers), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(WorkerConformance, EveryModel,
                         testing::ValuesIn(AllOrFew(Texts{"gpt", "bert", "mlp"}, 1)),
                         [](const auto& info) { return NameOf(info.param); });

class EveryPrecision : public WorkerJobs, public testing::WithParamInterface<std::string> {};

TEST_P(EveryPrecision, TrainsLikeInOneProcess) {
  JobConfig alone = JobOf("gpt", 1);
  alone.train.precision = GetParam();
  JobConfig job = JobOf("gpt", 2);
  job.train.precision = GetParam();
  Trains(job, Expected(alone));
}

INSTANTIATE_TEST_SUITE_P(WorkerConformance, EveryPrecision,
                         testing::ValuesIn(AllOrFew(Texts{"bf16", "fp16"}, 1)),
                         [](const auto& info) { return NameOf(info.param); });

// All but what keeps everything.
Texts Strategies() {
  Texts names{"d2d_swap", "host_swap"};
  if (!AllCases()) return names;
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const std::string name(strategy.name);
    if (name == "keep" || name == names[0] || name == names[1]) continue;
    names.push_back(name);
  }
  return names;
}

class EveryStrategy : public WorkerJobs,
                      public testing::WithParamInterface<std::tuple<std::string, int>> {};

// With a checksum of each tensor out and back (memory.check full, which the job has).
TEST_P(EveryStrategy, TrainsLikeOneProcessInWhatItNeedsAtLeast) {
  const auto& [strategy, workers] = GetParam();
  const std::optional<JobConfig> job = Tightest(JobOf("gpt", workers), strategy);
  if (!job.has_value()) {
    ASSERT_TRUE(strategy != "host_swap" && strategy != "auto" &&
                (strategy != "d2d_swap" || workers <= 2));
    GTEST_SKIP() << "skipped, because " << strategy << " saves nothing with " << workers;
  }
  Trains(*job, Expected(JobOf("gpt", 1)));
}

INSTANTIATE_TEST_SUITE_P(WorkerConformance, EveryStrategy,
                         testing::Combine(testing::ValuesIn(Strategies()),
                                          testing::ValuesIn(AllOrFew(Counts{4, 2, 1}, 1))),
                         [](const auto& info) {
                           return NameOf(absl::StrCat(std::get<0>(info.param), " on ",
                                                      std::get<1>(info.param)));
                         });

class ParkingAtNeighbours : public WorkerJobs, public testing::WithParamInterface<int> {};

// Activations of some size, by far more than one chunk of a copy where all cases run: tensors go to
// the memory of other processes, by IPC between devices.
TEST_P(ParkingAtNeighbours, IsInTheMemoryOfOtherProcesses) {
  const auto job_of = [&](int workers) {
    JobConfig job = JobOf("gpt", workers);
    job.model.hidden = AllCases() ? 256 : 96;
    job.model.heads = AllCases() ? 4 : 3;
    job.data.sequence_length = AllCases() ? 512 : 32;
    // Two balanced workers have little to lend each other.
    if (workers == 2) {
      job.pipeline.partition = "";
      job.pipeline.partition_layers = {5, 3};
    }
    return job;
  };
  const std::optional<JobConfig> job = Tightest(job_of(GetParam()), "d2d_swap");
  ASSERT_TRUE(job.has_value()) << "no plan parks anything";
  Trains(*job, Expected(job_of(1)));
  const auto result = ReadResult(*job);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->out_to_peers, Bytes(AllCases() ? 100 << 20 : 1 << 20)) << "in all steps";
  EXPECT_EQ(result->out_to_host, Bytes(0));
}

INSTANTIATE_TEST_SUITE_P(WorkerConformance, ParkingAtNeighbours,
                         testing::ValuesIn(AllOrFew(Counts{4, 2}, 1)),
                         [](const auto& info) { return absl::StrCat("on_", info.param); });

using WorkerConformance = WorkerJobs;

TEST_F(WorkerConformance, GoesOnFromACheckpointOnOtherWorkers) {
  JobConfig job = JobOf("gpt", 4);
  const JobResult expected = Expected(job);
  Trains(job, expected);
  JobConfig resumed = JobOf("gpt", 2);
  resumed.pipeline.stages = 4;
  resumed.pipeline.schedule = "interleaved_1f1b";
  resumed.checkpoint.resume = SavedCheckpoint(job);
  const absl::Status went_on = TrainWithProgram(resumed, folder_, Arguments(resumed));
  ASSERT_TRUE(went_on.ok()) << went_on;
  ExpectSame(expected, resumed, kSavedStep);
}

class AKilledWorker : public WorkerJobs, public testing::WithParamInterface<std::string> {};

// After so many steps, in the midst of a forward, of a backward and of a checkpoint: all ranks end
// within 10 s, by the contract's code for a lost worker. Starting ranks on a device takes several
// seconds by itself: a job that nobody kills says how many.
TEST_P(AKilledWorker, EndsTheJobSoon) {
  using Clock = std::chrono::steady_clock;
  const JobConfig healthy = JobOf("gpt", 2);
  const JobConfig job = JobOf("gpt", 2);
  const Clock::time_point begin = Clock::now();
  const absl::Status done = TrainWithProgram(healthy, folder_, Arguments(healthy));
  ASSERT_TRUE(done.ok()) << done;
  const Clock::time_point between = Clock::now();
  const std::string fault = absl::StrCat("SIPHON_INJECT_FAULT='1:", GetParam(), ":kill'");
  const absl::Status trained = TrainWithProgram(job, folder_, Arguments(job), fault);
  EXPECT_LT(Clock::now() - between, between - begin + std::chrono::seconds(10));
  EXPECT_THAT(std::string(trained.message()),
              testing::HasSubstr(absl::StrCat("exit code ", kExitWorkerLost)));
}

INSTANTIATE_TEST_SUITE_P(
    WorkerConformance, AKilledWorker,
    testing::ValuesIn(AllOrFew(Texts{"2:1B1", "2:1F2", "3:writing a checkpoint"}, 1)),
    [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace siphon
