#include "launch/config/check_job_config.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A schedule's program has a few actions for each microbatch; more than this is a slip of the pen.
constexpr int64_t kMostMicrobatches = 1 << 20;

// "nearest: 28 or 32", or "nearest: 4" below the first multiple.
std::string NearestMultiples(int64_t value, int64_t of) {
  const int64_t below = value - value % of;
  int64_t above = 0;
  const bool fits = !__builtin_add_overflow(below, of, &above);
  if (below == 0) return absl::StrCat("nearest: ", above);
  return fits ? absl::StrCat("nearest: ", below, " or ", above) : absl::StrCat("nearest: ", below);
}

// Of two keys that clash, the one that the user wrote; the first when both or none were.
std::string Culprit(const JobConfig& job, const std::string& first, const std::string& second) {
  return job.origins.contains(first) || !job.origins.contains(second) ? first : second;
}

absl::Status CheckProduct(const JobConfig& job, const std::string& key, int64_t a, int64_t b,
                          absl::string_view what) {
  const absl::StatusOr<int64_t> product = CheckedProduct(a, b, what);
  return product.ok() ? absl::OkStatus() : ConfigError(job, key, product.status().message());
}

absl::Status CheckBatches(const JobConfig& job) {
  const TrainConfig& train = job.train;
  if (train.microbatch < 1) {
    return ConfigError(job, "train.microbatch", "must be at least 1 sequence");
  }
  if (train.global_batch % train.microbatch != 0 || train.global_batch < 1) {
    return ConfigError(job, Culprit(job, "train.global_batch", "train.microbatch"),
                       absl::StrCat("train.global_batch ", train.global_batch,
                                    " is not divisible by train.microbatch ", train.microbatch,
                                    "; ", NearestMultiples(train.global_batch, train.microbatch)));
  }
  const int64_t microbatches = train.global_batch / train.microbatch;
  if (microbatches > kMostMicrobatches) {
    return ConfigError(
        job, Culprit(job, "train.global_batch", "train.microbatch"),
        absl::StrCat("train.global_batch ", train.global_batch, " with train.microbatch ",
                     train.microbatch, " makes ", microbatches, " microbatches a step; at most ",
                     kMostMicrobatches));
  }
  SIPHON_RETURN_IF_ERROR(
      CheckProduct(job, "data.sequence_length", train.global_batch, job.data.sequence_length,
                   absl::StrCat("train.global_batch ", train.global_batch,
                                " x data.sequence_length ", job.data.sequence_length)));
  return CheckProduct(
      job, "train.steps", train.global_batch, train.steps,
      absl::StrCat("train.steps ", train.steps, " x train.global_batch ", train.global_batch));
}

absl::Status CheckHeads(const JobConfig& job) {
  const ModelConfig& model = job.model;
  const bool has_heads = model.kind == "gpt" || model.kind == "bert";
  if (!has_heads || (model.heads > 0 && model.hidden % model.heads == 0)) return absl::OkStatus();
  return ConfigError(
      job, Culprit(job, "model.hidden", "model.heads"),
      absl::StrCat("model.hidden ", model.hidden, " is not divisible by model.heads ", model.heads,
                   "; ", NearestMultiples(model.hidden, std::max<int64_t>(model.heads, 1))));
}

// Asked of the job that is left of file and overrides.
absl::Status CheckBackend(const JobConfig& job, const KnownNames& known) {
  const bool asks = job.pipeline.backend == "cuda" && known.purpose == JobPurpose::kRun;
  if (!asks || known.why_no_cuda == nullptr) return absl::OkStatus();
  const std::string problem = known.why_no_cuda();
  return problem.empty() ? absl::OkStatus() : ConfigError(job, "pipeline.backend", problem);
}

absl::Status CheckPipeline(const JobConfig& job) {
  const PipelineConfig& pipeline = job.pipeline;
  if (pipeline.schedule == "csv" && pipeline.schedule_file.empty()) {
    return ConfigError(job, "pipeline.schedule_file",
                       "is missing; pipeline.schedule csv needs the path of a file");
  }
  if (pipeline.transport == "nccl" && pipeline.backend != "cuda") {
    return ConfigError(job, Culprit(job, "pipeline.transport", "pipeline.backend"),
                       absl::StrCat("nccl moves memory of CUDA devices, but pipeline.backend is ",
                                    pipeline.backend, "; auto, shared_memory and mpi work"));
  }
  const auto explicit_stages = static_cast<int64_t>(pipeline.partition_layers.size());
  if (pipeline.partition.empty() && explicit_stages != pipeline.stages) {
    return ConfigError(
        job, "pipeline.partition",
        absl::StrCat("lists ", explicit_stages, " stages, pipeline.stages is ", pipeline.stages,
                     "; write one number of layers for each stage"));
  }
  return absl::OkStatus();
}

// How many processes there are is for the job to say.
absl::Status CheckLaunch(const JobConfig& job) {
  constexpr absl::string_view kCounts[] = {"-np", "--np", "-n", "--n", "-c"};
  for (const std::string& option : job.launch.mpirun_options) {
    if (!absl::c_linear_search(kCounts, option)) continue;
    return ConfigError(
        job, "launch.mpirun_options",
        absl::StrCat("has ", option,
                     ", but mpirun is told to start a process for each worker; leave it out, and "
                     "write pipeline.stages for another number of them"));
  }
  return absl::OkStatus();
}

absl::Status CheckServers(const JobConfig& job) {
  const TopologyConfig& topology = job.topology;
  if (topology.servers == 1) return absl::OkStatus();
  if (topology.network_rate == BytesPerSecond(0)) {
    return ConfigError(job, "topology.network_rate",
                       absl::StrCat("is missing; ", topology.servers,
                                    " servers are planned for by the rate between them, such as "
                                    "25GB/s"));
  }
  if (topology.throttle == "none") return absl::OkStatus();
  return ConfigError(job, "topology.throttle",
                     absl::StrCat("holds links of one server, and topology.servers is ",
                                  topology.servers, "; none works"));
}

absl::Status CheckMemory(const JobConfig& job, const ConfigLimits& limits) {
  constexpr Bytes kLeastChunk{4 << 10};
  if (job.memory.chunk < kLeastChunk) {
    return ConfigError(
        job, "memory.chunk",
        absl::StrCat(FormatBytes(job.memory.chunk), " is less than ", FormatBytes(kLeastChunk),
                     "; leave the key out for ", FormatBytes(MemoryConfig().chunk)));
  }
  for (const Bytes capacity : job.memory.capacity) {
    if (capacity <= job.memory.reserve) {
      return ConfigError(
          job, "memory.capacity",
          absl::StrCat(FormatBytes(capacity), " leaves no room beside memory.reserve ",
                       FormatBytes(job.memory.reserve), "; leave the key out for no limit"));
    }
    // Of other workers it is their device's.
    const bool is_of_machine = job.pipeline.backend == "cpu" && limits.machine_memory > Bytes(0);
    if (is_of_machine && capacity > limits.machine_memory) {
      return ConfigError(
          job, "memory.capacity",
          absl::StrCat(FormatBytes(capacity), " is more than this machine's memory, ",
                       FormatBytes(limits.machine_memory), "; write at most that"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckJobConfig(const JobConfig& job, const ConfigLimits& limits) {
  SIPHON_RETURN_IF_ERROR(CheckBackend(job, limits.known));
  SIPHON_RETURN_IF_ERROR(CheckBatches(job));
  SIPHON_RETURN_IF_ERROR(CheckHeads(job));
  SIPHON_RETURN_IF_ERROR(CheckPipeline(job));
  SIPHON_RETURN_IF_ERROR(CheckLaunch(job));
  if (job.model.kind == "plugin" && job.model.library.empty()) {
    return ConfigError(job, "model.library",
                       "is missing; model.kind plugin needs the path of a shared object");
  }
  if (job.topology.source == "file" && job.topology.name.empty()) {
    return ConfigError(job, "topology.name",
                       "is missing; topology.source file needs the path of a topology file");
  }
  if (job.topology.source == "probe" && job.pipeline.backend != "cuda") {
    return ConfigError(job, "topology.source",
                       absl::StrCat("probe measures CUDA devices, and the job's workers have none "
                                    "(pipeline.backend: ",
                                    job.pipeline.backend, "); preset and file work"));
  }
  if (job.topology.source == "probe" && job.topology.servers > 1) {
    return ConfigError(
        job, "topology.source",
        absl::StrCat("probe measures one machine, and topology.servers is ", job.topology.servers,
                     "; file works, with what siphon topology --probe --output FILE "
                     "writes on one of them"));
  }
  SIPHON_RETURN_IF_ERROR(CheckServers(job));
  return CheckMemory(job, limits);
}

}  // namespace siphon
