// Whole jobs by the program, as users run them, against one process that trains alone on the same
// kind of device: 1, 2 and 4 workers, every strategy, checksums of all that moves, capacities from
// ample to the least that can be planned, a resume on other workers, and workers that are killed.
//
// With SIPHON_GPU=1 on CUDA devices, which workers share where there are fewer; without it on the
// CPU, as ctest runs it, fewer of the jobs: a device meets a source that is known to work.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/process/exit_codes.h"
#include "launch/run/cuda_machine.h"
#include "launch/run/prepare_job.h"
#include "pipeline/torch/determinism.h"
#include "pipeline/torch/load_torch_cuda.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/conformance/job_runs.h"
#include "tests/pipeline/live_schedules.h"

namespace siphon {
namespace {

bool OnGpu() {
  const char* const wanted = std::getenv("SIPHON_GPU");
  return wanted != nullptr && std::string(wanted) == "1";
}

// What the program is told besides its job.
std::string Arguments() { return OnGpu() ? "--share_gpu" : ""; }

const TorchCudaModule& TheTorchCuda() {
  static const TorchCudaModule* const module = [] {
    const char* const path = std::getenv("SIPHON_TORCH_CUDA_MODULE");
    const auto loaded = LoadTorchCuda(path == nullptr ? "" : path);
    SIPHON_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *module;
}

class WorkerConformance : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!OnGpu()) return;
    SetCudaEnvironment(/*rank=*/0, DeviceUse::kOneEach);
    SetDeterminism(Determinism::kRequired);
  }

  // One process alone, on the device.
  static JobResult Expected(const JobConfig& job) {
    OpenTorchDevice open;
    if (OnGpu()) {
      open = [] {
        auto opened = TheTorchCuda().Open(0, TorchKernels::kLoad);
        SIPHON_CHECK(opened.ok(), opened.status().message());
        return *std::move(opened);
      };
    }
    const auto result = ReferenceResult(job, {}, open);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(JobResult());
  }

  JobConfig JobOf(const std::string& kind, int workers) {
    JobConfig job = SmallTextJob(folder_, absl::StrCat(kind, "-", workers, "-", ++runs_), kind);
    job.pipeline.stages = workers;
    job.memory.strategy = "keep";
    if (OnGpu()) {
      job.pipeline.backend = "cuda";
      job.topology.name = "hgx_h200";  // what is planned for; there may be fewer
    }
    return job;
  }
  // So much of what the tensors of its fullest worker take where all of them stay, beside messages
  // and the like; others have as much, and may lend what they have left.
  static std::vector<Bytes> Capacity(const JobConfig& job, int64_t percent) {
    const auto prepared = PrepareJob(job, {});
    SIPHON_CHECK(prepared.ok(), prepared.status().message());
    const auto estimate =
        EstimateJob({prepared->job, prepared->model.spec, prepared->plan}, Accounting::kRuntime);
    SIPHON_CHECK(estimate.ok(), estimate.status().message());
    Bytes most;
    for (const MemoryByKind& worker : estimate->workers) {
      const Bytes beside = worker[MemoryKind::kCommunication];
      most = std::max(most, beside + Bytes((Total(worker) - beside).value * percent / 100));
    }
    return {most};
  }
  // The job with as little as its strategy can do with.
  static std::optional<JobConfig> Tightest(const JobConfig& kept, const std::string& strategy) {
    std::optional<JobConfig> least;
    for (const int64_t percent : {97, 90, 80, 70, 60, 50}) {
      JobConfig job = kept;
      job.memory.capacity = Capacity(kept, percent);
      job.memory.strategy = strategy;
      if (!PrepareJob(job, {}).ok()) break;
      least = std::move(job);
    }
    return least;
  }

  void Trains(const JobConfig& job, const JobResult& expected) {
    const absl::Status trained = TrainWithProgram(job, folder_, Arguments());
    ASSERT_TRUE(trained.ok()) << trained;
    ExpectSame(expected, job, 0);
    if (job.memory.capacity.empty()) return;
    const auto result = ReadResult(job);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto largest = std::max_element(job.memory.capacity.begin(), job.memory.capacity.end());
    EXPECT_LE(result->largest_peak, *largest);
  }

  ScratchFolder folder_;
  int runs_ = 0;
};

TEST_F(WorkerConformance, OneTwoAndFourWorkersTrainLikeOneProcess) {
  for (const std::string kind : {"gpt", "bert", "mlp"}) {
    if (!OnGpu() && kind != "gpt") continue;
    const JobResult expected = Expected(JobOf(kind, 1));
    for (const int workers : {1, 2, 4}) {
      SCOPED_TRACE(absl::StrCat(kind, " on ", workers));
      Trains(JobOf(kind, workers), expected);
    }
  }
}

TEST_F(WorkerConformance, EverySixteenBitPrecisionTrainsLikeOneProcess) {
  for (const std::string precision : {"bf16", "fp16"}) {
    if (!OnGpu() && precision == "fp16") continue;
    SCOPED_TRACE(precision);
    JobConfig alone = JobOf("gpt", 1);
    alone.train.precision = precision;
    JobConfig job = JobOf("gpt", 2);
    job.train.precision = precision;
    Trains(job, Expected(alone));
  }
}

// With a checksum of each tensor out and back (memory.check full, which the job has).
TEST_F(WorkerConformance, EveryStrategyTrainsLikeOneProcessInWhatItNeedsAtLeast) {
  const JobResult expected = Expected(JobOf("gpt", 1));
  int tightened = 0;
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const std::string name(strategy.name);
    if (!OnGpu() && name != "d2d_swap" && name != "host_swap") continue;
    if (OnGpu() && name == "nvme_swap") continue;  // not built for CUDA workers
    for (const int workers : {2, 4}) {
      if (!OnGpu() && workers == 2) continue;
      SCOPED_TRACE(absl::StrCat(name, " on ", workers));
      const std::optional<JobConfig> job = Tightest(JobOf("gpt", workers), name);
      if (!job.has_value()) continue;
      ++tightened;
      Trains(*job, expected);
    }
  }
  EXPECT_GT(tightened, 1) << "hardly any strategy saves anything";
}

TEST_F(WorkerConformance, GoesOnFromACheckpointOnOtherWorkers) {
  JobConfig job = JobOf("gpt", 4);
  const JobResult expected = Expected(job);
  Trains(job, expected);
  JobConfig resumed = JobOf("gpt", 2);
  resumed.pipeline.stages = 4;
  resumed.pipeline.schedule = "interleaved_1f1b";
  resumed.checkpoint.resume = SavedCheckpoint(job);
  const absl::Status went_on = TrainWithProgram(resumed, folder_, Arguments());
  ASSERT_TRUE(went_on.ok()) << went_on;
  ExpectSame(expected, resumed, kSavedStep);
}

// In the midst of a forward, of a backward and of a checkpoint: all ranks end within 10 s, by the
// contract's code for a lost worker.
TEST_F(WorkerConformance, AKilledWorkerEndsTheJobSoon) {
  for (const std::string place : {"1F2", "1B1", "writing a checkpoint"}) {
    if (!OnGpu() && place != "1B1") continue;
    SCOPED_TRACE(place);
    const JobConfig job = JobOf("gpt", 2);
    const std::string fault = absl::StrCat("SIPHON_INJECT_FAULT='1:2:", place, ":kill'");
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status trained = TrainWithProgram(job, folder_, Arguments(), fault);
    EXPECT_THAT(std::string(trained.message()),
                testing::HasSubstr(absl::StrCat("exit code ", kExitWorkerLost)));
    // Starting a rank on a device takes several seconds by itself.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(OnGpu() ? 60 : 20));
  }
}

}  // namespace
}  // namespace siphon
