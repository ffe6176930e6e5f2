#include "tests/gpu/worker_jobs.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/run/cuda_machine.h"
#include "launch/run/job/prepare_job.h"
#include "pipeline/torch/determinism.h"
#include "pipeline/torch/device/load_torch_cuda.h"
#include "planner/status.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/all_cases.h"

namespace siphon {
namespace {

bool IsWanted(const char* variable) {
  const char* const wanted = std::getenv(variable);
  return wanted != nullptr && std::string(wanted) == "1";
}

const TorchCudaModule& TheTorchCuda() {
  static const TorchCudaModule* const module = [] {
    const char* const path = std::getenv("SIPHON_TORCH_CUDA_MODULE");
    const auto loaded = LoadTorchCuda(path == nullptr ? "" : path);
    SIPHON_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *module;
}

}  // namespace

bool OnGpu() { return IsWanted("SIPHON_GPU"); }

bool AllCases() { return OnGpu() || TakesAllCases(); }

void WorkerJobs::SetUpTestSuite() {
  if (!OnGpu()) return;
  SetCudaEnvironment(/*rank=*/0, DeviceUse::kOneEach);
  SetDeterminism(Determinism::kRequired);
}

std::string WorkerJobs::Arguments(const JobConfig& job) {
  if (!OnGpu()) return "";
  const auto devices = TheTorchCuda().Devices();
  return devices.ok() && *devices >= job.pipeline.stages ? "" : "--share_gpu";
}

std::unique_ptr<TorchDevice> WorkerJobs::OpenGpu() {
  auto opened = TheTorchCuda().Open(0, TorchKernels::kLoad);
  SIPHON_CHECK(opened.ok(), opened.status().message());
  return *std::move(opened);
}

JobResult WorkerJobs::Expected(const JobConfig& job) {
  const auto result = ReferenceResult(job, {}, OnGpu() ? OpenGpu : OpenTorchDevice());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(JobResult());
}

JobConfig WorkerJobs::JobOf(const std::string& kind, int workers) {
  JobConfig job = SmallTextJob(folder_, absl::StrCat(kind, "-", workers, "-", ++runs_), kind);
  job.pipeline.stages = workers;
  job.memory.strategy = "keep";
  if (OnGpu()) {
    job.pipeline.backend = "cuda";
    // So that its tensors are something beside what devices need besides, and lenders have room.
    job.model.hidden = 128;
    job.model.heads = 2;
    job.data.sequence_length = 64;
  }
  job.topology.source = "file";
  job.topology.name = ServerOf(workers);
  return job;
}

// A server to plan for, as a file: H200s on NVSwitches, no more of them than workers.
std::string WorkerJobs::ServerOf(int devices) const {
  const std::string path = absl::StrCat(folder_.path(), "/", devices, "_devices.yaml");
  std::ofstream file(path);
  file << "name: as many H200s as workers\ndevice: H200\ndevices: " << devices
       << "\ndevice_memory: 139GiB\ncopy_engines: one_for_all_peers\nfabric_wires: 18\n"
          "wire_rate: 20.8GB/s\nlatency: 2.5us\nswitches:\n";
  for (int device = 0; device < devices; ++device) {
    file << "  - {devices: [" << device << "], to_host: 52.8GB/s, from_host: 55.6GB/s}\n";
  }
  return path;
}

std::vector<Bytes> WorkerJobs::Capacity(const JobConfig& job, int64_t percent) {
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

std::optional<JobConfig> WorkerJobs::Tightest(const JobConfig& kept, const std::string& strategy) {
  std::optional<JobConfig> least;
  int64_t fits = 98;
  for (int64_t too_little = 0; fits - too_little > 1;) {
    // Strategies that save next to nothing are seen at once.
    const int64_t percent = least.has_value() ? (fits + too_little) / 2 : 97;
    JobConfig job = kept;
    job.memory.capacity = Capacity(kept, percent);
    job.memory.strategy = strategy;
    const bool can_be_planned = PrepareJob(job, {}).ok();
    if (!can_be_planned && !least.has_value()) return std::nullopt;
    (can_be_planned ? fits : too_little) = percent;
    if (can_be_planned) least = std::move(job);
  }
  return least;
}

void WorkerJobs::Trains(const JobConfig& job, const JobResult& expected) {
  const absl::Status trained = TrainWithProgram(job, folder_, Arguments(job));
  ASSERT_TRUE(trained.ok()) << trained;
  ExpectSame(expected, job, 0);
  if (job.memory.capacity.empty()) return;
  const auto result = ReadResult(job);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto largest = std::max_element(job.memory.capacity.begin(), job.memory.capacity.end());
  EXPECT_LE(result->largest_peak, *largest);
}

}  // namespace siphon
