#include "launch/plan_job/job_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/matrix_kernels.h"
#include "launch/plan_job/plan_rings.h"
#include "planner/memory/estimate_published.h"
#include "planner/memory/estimate_runtime.h"
#include "planner/placement_bytes.h"
#include "planner/round_up.h"
#include "planner/status.h"

namespace siphon {
namespace {

// That the optimizer keeps of each parameter: those of
// pipeline/torch/parameters/fused_optimizers.cc.
int MomentsOf(const TrainConfig& train) {
  if (train.optimizer == "sgd") return train.momentum > 0 ? 1 : 0;
  return 2;
}

// What LibTorch takes of a CUDA device beside tensors, guesses until a device has answered:
// workspaces of cuBLAS and cuBLASLt for each of the two threads that compute (passes backward have
// one of their own), and what its allocator leaves unused of the memory that it takes, whose limit
// counts that too. Tensors that are away between a forward and a backward are not freed in the
// order in which they were made, so that is a part of the whole: a fortieth, and no less than the
// unused ends of its first blocks.
constexpr Bytes kWorkspace{32 << 20};
constexpr Bytes kLeastUnused{64 << 20};
constexpr int64_t kUnusedPart = 40;
// Its blocks are multiples of this.
constexpr Bytes kDeviceBlock{512};
// What a worker lends begins and ends with a block of the driver (swap/device/cuda_arena.h).
constexpr Bytes kDriverBlock{2 << 20};

Bytes LibTorchOnCuda(Bytes capacity) {
  return kWorkspace * 4 + std::max(kLeastUnused, Bytes(capacity.value / kUnusedPart));
}

void AddLibTorchOnCuda(const JobConfig& job, const TrainingPlan& plan,
                       std::vector<Bytes>& communication) {
  communication.resize(static_cast<size_t>(WorkerCount(plan.training)));
  for (WorkerId worker(0); worker.value < WorkerCount(plan.training); ++worker.value) {
    const Bytes capacity = WorkerCapacity(job, worker).value_or(Bytes(0));
    communication[static_cast<size_t>(worker.value)] += LibTorchOnCuda(capacity) + kDriverBlock;
  }
}

// A device has copies of what it computes on of the host's data, for each microbatch between its
// forward and its backward: the first stage's of samples, the last one's of targets.
void AddDataOnDevice(const TrainingPlan& plan, const ModelSpec& model,
                     std::vector<Bytes>& communication) {
  const std::vector<int> live = PeakLiveMicrobatches(plan.training);
  const std::vector<WorkerId>& workers = plan.training.worker_of_stage;
  const auto add = [&](size_t stage, const TensorSpec& sample) {
    const Bytes copy = RoundUp(SizeOf(sample) * plan.microbatch, kDeviceBlock);
    communication[static_cast<size_t>(workers[stage].value)] += copy * live[stage];
  };
  add(0, model.input);
  add(workers.size() - 1, model.target);
}

}  // namespace

HeldVectors HeldVectorsOf(const PipelineConfig& pipeline) {
  return pipeline.backend == "cuda" ? HeldVectors::kComputed : HeldVectors::kFloat32;
}

absl::StatusOr<MemoryInputs> MemoryInputsOf(const PlannedJob& planned) {
  const auto& [job, model, plan, csv, profile] = planned;
  MemoryInputs inputs{.model = &model,
                      .partition = &plan.partition,
                      .schedule = &plan.training,
                      .microbatch = plan.microbatch,
                      .moments = MomentsOf(job.train),
                      .profile = profile};
  const absl::StatusOr<Precision> precision = ParsePrecision(job.train.precision);
  if (!precision.ok()) {
    return ConfigError(job, "train.precision", precision.status().message());
  }
  inputs.precision = *precision;
  inputs.vectors = HeldVectorsOf(job.pipeline);
  if (job.pipeline.backend != "cuda") inputs.matrix_kernels = MatrixKernelsHere();
  const TransportKind kind = TransportKindOf(job.pipeline);
  inputs.communication = MessageMemory(kind, plan, model);
  if (job.pipeline.backend == "cuda") {
    AddLibTorchOnCuda(job, plan, inputs.communication);
    AddDataOnDevice(plan, model, inputs.communication);
  }
  if (kind == TransportKind::kRings && RingsHoldBoundaries(plan, model)) {
    inputs.sent = SentTensors::kCopied;
  }
  return inputs;
}

absl::StatusOr<MemoryEstimate> EstimateJob(const PlannedJob& planned, Accounting accounting) {
  SIPHON_ASSIGN_OR_RETURN(const MemoryInputs inputs, MemoryInputsOf(planned));
  return accounting == Accounting::kPublished ? EstimatePublished(inputs) : EstimateRuntime(inputs);
}

std::optional<Bytes> WorkerCapacity(const JobConfig& job, WorkerId worker) {
  const std::vector<Bytes>& capacity = job.memory.capacity;
  if (capacity.empty()) return std::nullopt;
  const size_t index = capacity.size() == 1 ? 0 : static_cast<size_t>(worker.value);
  return capacity[std::min(index, capacity.size() - 1)] - job.memory.reserve;
}

std::optional<Misfit> FindMisfit(const JobConfig& job, const MemoryEstimate& estimate) {
  std::optional<Misfit> worst;
  for (int worker = 0; worker < static_cast<int>(estimate.workers.size()); ++worker) {
    const std::optional<Bytes> capacity = WorkerCapacity(job, WorkerId(worker));
    if (!capacity.has_value()) continue;
    const Misfit misfit{WorkerId(worker), Total(estimate.workers[worker]), *capacity};
    if (misfit.needed <= misfit.capacity) continue;
    if (!worst.has_value() || misfit.missing() > worst->missing()) worst = misfit;
  }
  return worst;
}

absl::Status CheckFits(const PlannedJob& planned) {
  if (planned.job.memory.capacity.empty()) return absl::OkStatus();
  SIPHON_ASSIGN_OR_RETURN(const MemoryEstimate estimate,
                          EstimateJob(planned, Accounting::kRuntime));
  if (!UnknownLayers(estimate).empty()) return absl::OkStatus();
  const std::optional<Misfit> misfit = FindMisfit(planned.job, estimate);
  if (!misfit.has_value()) return absl::OkStatus();
  const std::vector<FittingChange> changes = ChangesThatFit(planned);
  const std::string reserve =
      planned.job.memory.reserve > Bytes()
          ? absl::StrCat(" less memory.reserve ", FormatBytes(planned.job.memory.reserve))
          : "";
  const bool keeps = planned.job.memory.strategy == "keep";
  return absl::ResourceExhaustedError(
      absl::StrCat("the job does not fit: worker ", misfit->worker.value, " needs ",
                   FormatBytes(misfit->needed), " at its peak, memory.capacity", reserve, " is ",
                   FormatBytes(misfit->capacity), ", ", FormatBytes(misfit->missing()),
                   " short\n  ", keeps ? "smallest change that fits" : "to keep everything",
                   ": --set ", changes.front().setting, " (", changes.front().meaning, "; ",
                   FormatBytes(changes.front().largest),
                   " on the fullest worker)\n  siphon memory shows the bytes of each stage"));
}

}  // namespace siphon
