#include "launch/run/seat/training_state.h"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/config/job_schema.h"
#include "launch/config/load_job_config.h"
#include "launch/run/seat/phases.h"
#include "planner/plan_text.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::string TensorName(const StateTensor& tensor) {
  switch (tensor.kind) {
    case StateTensor::Kind::kParameter:
    case StateTensor::Kind::kMaster:
      return tensor.name;
    case StateTensor::Kind::kFirstMoment:
      return absl::StrCat(tensor.name, ".exp_avg");
    case StateTensor::Kind::kSecondMoment:
      return absl::StrCat(tensor.name, ".exp_avg_sq");
  }
  return tensor.name;
}

bool IsMoment(const StateTensor& tensor) {
  return tensor.kind == StateTensor::Kind::kFirstMoment ||
         tensor.kind == StateTensor::Kind::kSecondMoment;
}

// What has 16 bits is rounded from its master, which has the same name.
bool HasMaster(const StateTensor& tensor) {
  return tensor.kind == StateTensor::Kind::kParameter && tensor.spec.dtype != DType::kFloat32;
}

enum class Which { kOwned, kAll };
using Access = StateSwaps::Access;

// The memory of tensor `index` of a stage's state, as the host reads or writes it until the next
// call or Close.
absl::StatusOr<absl::Span<std::byte>> OpenState(const WorkerStages& worker, StageId stage,
                                                size_t index, Access access) {
  SIPHON_RETURN_IF_ERROR(worker.window->Close());  // before what it was of leaves
  StageCompute& compute = *worker.stages->at(stage);
  SIPHON_RETURN_IF_ERROR(worker.swaps->Open(stage, index, access).status());
  return worker.window->Open(compute, compute.State()[index], access);
}

// `at_phase` hears of each tensor whose turn it is: there may be hundreds of gigabytes of them.
std::vector<CheckpointTensor> TensorsOf(const WorkerStages& worker, Which which, Access access,
                                        const PhaseObserver& at_phase) {
  const char* const phase = access == Access::kRead ? kWritingPhase : kReadingPhase;
  std::vector<CheckpointTensor> tensors;
  for (const auto& [stage, compute] : *worker.stages) {
    const std::vector<StateTensor> state = compute->State();
    for (size_t index = 0; index < state.size(); ++index) {
      const StateTensor& tensor = state[index];
      if (which == Which::kOwned && !tensor.owned) continue;
      if (access == Access::kRead && HasMaster(tensor)) continue;
      tensors.push_back({.name = TensorName(tensor),
                         .optimizer = IsMoment(tensor),
                         .spec = tensor.spec,
                         .bring = [=, stage = stage]() -> absl::StatusOr<absl::Span<std::byte>> {
                           SIPHON_RETURN_IF_ERROR(at_phase(phase));
                           return OpenState(worker, stage, index, access);
                         }});
    }
  }
  return tensors;
}

LossScale FirstLossScale(const TrainConfig& train) {
  return {.scale = ScalesLoss(train) ? kFirstLossScale : 1};
}

// `status`, or that of sending away again what was brought in last.
absl::Status Close(const WorkerStages& worker, absl::Status status) {
  status.Update(worker.window->Close());
  status.Update(worker.swaps->Close());
  return status;
}

// The checkpoint to resume from, empty for a fresh start. Worker 0's word counts.
absl::StatusOr<std::string> ChooseCheckpoint(const JobConfig& job) {
  const std::string& resume = job.checkpoint.resume;
  if (resume == "none") return std::string();
  if (resume != "auto") return resume;
  auto newest = NewestCheckpoint(CheckpointDirectory(job));
  if (newest.ok()) return newest;
  if (absl::IsNotFound(newest.status())) return std::string();
  return newest.status();
}

// The orders in which the gradients of layers are added up, microbatch by microbatch. One entry
// where all layers have the same.
std::set<std::vector<MicrobatchId>> AccumulationOrders(const Schedule& schedule) {
  std::set<std::vector<MicrobatchId>> orders;
  for (int stage = 0; stage < StageCount(schedule); ++stage) {
    orders.insert(AccumulationOrder(schedule, StageId(stage)));
  }
  return orders;
}

// Sums in another order have other bits. Where layers differ among themselves, the same orders may
// still belong to other layers: that is not claimed to be the same.
bool AddsUpInAnotherOrder(const Schedule& now, const Schedule& then) {
  const auto orders = AccumulationOrders(now);
  if (orders != AccumulationOrders(then)) return true;
  return orders.size() > 1 && now != then;
}

// Keys that decide the bits of a run and can change without another shape of any tensor; those that
// a checkpoint has beside its job are compared by themselves.
constexpr const char* kKeysOfBits[] = {
    "model.heads",           "model.dropout",
    "model.flash_attention", "model.activation",
    "train.learning_rate",   "train.schedule",
    "train.warmup_steps",    "train.final_learning_rate_fraction",
    "train.weight_decay",    "train.beta1",
    "train.beta2",           "train.momentum",
    "train.clip_norm",       "train.deterministic"};

// Whether the learning rate of a step depends on how many there are in all.
bool FollowsStepCount(const TrainConfig& train) {
  return train.schedule != "constant" && train.final_learning_rate_fraction < 1 &&
         train.learning_rate > 0;
}

void NoteDifferences(const PreparedJob& prepared, const CheckpointInfo& info,
                     std::vector<std::string>& warnings) {
  const JobConfig& job = prepared.job;
  const auto differs = [&](absl::string_view what, const auto& now, const auto& then) {
    if (now == then) return;
    warnings.push_back(absl::StrCat(what, " is ", now, " and was ", then,
                                    " when the checkpoint was written: results will not be "
                                    "bitwise those of an uninterrupted run"));
  };
  differs("train.precision", job.train.precision, info.precision);
  differs("pipeline.threads_per_worker", job.pipeline.threads_per_worker, info.threads_per_worker);
  differs("train.seed", job.train.seed, info.seed);
  // A job of another version may have keys that this one does not know.
  const absl::StatusOr<JobConfig> job_then = ParsePastJob(info.job_text, "the checkpoint");
  for (const JobKey& key : JobSchema()) {
    const std::string name = absl::StrCat(key.section, ".", key.key);
    const bool decides = job_then.ok() && absl::c_linear_search(kKeysOfBits, name);
    if (decides) differs(name, key.write(job), key.write(*job_then));
  }
  const bool goes_on = info.step < job.train.steps;
  if (goes_on && job_then.ok() && FollowsStepCount(job.train) &&
      FollowsStepCount(job_then->train)) {
    differs(absl::StrCat("train.steps, over which the learning rate falls (train.schedule ",
                         job.train.schedule, "),"),
            job.train.steps, job_then->train.steps);
  }
  const absl::StatusOr<PlanText> then = ParsePlanText(info.plan_text);
  const bool knows_plan = then.ok();  // else of a version that wrote plans otherwise
  const bool same_batch = !knows_plan || (then->global_batch == job.train.global_batch &&
                                          then->microbatch == job.train.microbatch);
  if (!same_batch) {
    differs("train.global_batch", job.train.global_batch, then->global_batch);
    differs("train.microbatch", job.train.microbatch, then->microbatch);
  } else if (knows_plan && AddsUpInAnotherOrder(prepared.plan.training, then->training)) {
    warnings.push_back(
        absl::StrCat("schedule ", prepared.plan.schedule_name,
                     " adds up the gradients of microbatches in another order than the run that "
                     "wrote the checkpoint: results will not be bitwise those of that run"));
  }
  if (prepared.data.fingerprint != info.data_fingerprint) {
    warnings.push_back("the data differ from those that the checkpoint was trained on");
  }
}

// A path that the user wrote is blamed on its key.
absl::Status ResumeError(const JobConfig& job, const absl::Status& status) {
  const bool input = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  if (!input) return status;
  if (job.checkpoint.resume == "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat(status.message(),
                     "; checkpoint.resume is auto, which continues from the newest checkpoint and "
                     "passes over none: repair this one or move it away"));
  }
  return ConfigError(job, "checkpoint.resume", status.message());
}

absl::StatusOr<Checkpoint> OpenToResume(const JobConfig& job, const std::string& path) {
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(path);
  if (!checkpoint.ok()) return ResumeError(job, checkpoint.status());
  const CheckpointInfo& info = checkpoint->info();
  if (info.optimizer != job.train.optimizer) {
    return ConfigError(job, "train.optimizer",
                       absl::StrCat(job.train.optimizer, ", but the checkpoint ", path,
                                    " holds the state of ", info.optimizer));
  }
  return checkpoint;
}

absl::StatusOr<Progress> ReadCheckpoint(const PreparedJob& prepared, const WorkerStages& stages,
                                        const std::string& path, const PhaseObserver& at_phase,
                                        std::vector<std::string>& warnings) {
  SIPHON_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenToResume(prepared.job, path));
  const CheckpointInfo& info = checkpoint.info();
  const absl::Status read =
      Close(stages, checkpoint.Read(TensorsOf(stages, Which::kAll, Access::kWrite, at_phase)));
  if (!read.ok()) return ResumeError(prepared.job, read);
  NoteDifferences(prepared, info, warnings);
  Progress progress{
      .step = info.step, .samples_consumed = info.samples_consumed, .checkpoint = path};
  progress.loss_scale = FirstLossScale(prepared.job.train);
  if (info.precision == prepared.job.train.precision) {
    progress.loss_scale = info.loss_scale;
  } else {  // the moments have seen so many updates
    progress.loss_scale.skipped_steps = info.loss_scale.skipped_steps;
  }
  return progress;
}

absl::StatusOr<Progress> StartFresh(const PreparedJob& prepared, const WorkerStages& stages,
                                    const PhaseObserver& at_phase) {
  const Progress fresh{.loss_scale = FirstLossScale(prepared.job.train)};
  const std::string& initial = prepared.job.model.init_from;
  if (initial.empty()) return fresh;
  std::vector<CheckpointTensor> parameters;
  for (CheckpointTensor& tensor : TensorsOf(stages, Which::kAll, Access::kWrite, at_phase)) {
    if (!tensor.optimizer) parameters.push_back(std::move(tensor));
  }
  const absl::Status status = Close(stages, ReadInitialWeights(initial, parameters));
  if (!status.ok()) return ConfigError(prepared.job, "model.init_from", status.message());
  return fresh;
}

CheckpointInfo InfoOf(const PreparedJob& prepared, const Progress& progress) {
  return {.step = progress.step,
          .samples_consumed = progress.samples_consumed,
          .seed = prepared.job.train.seed,
          .threads_per_worker = prepared.job.pipeline.threads_per_worker,
          .optimizer = prepared.job.train.optimizer,
          .precision = prepared.job.train.precision,
          .loss_scale = progress.loss_scale,
          .data_fingerprint = prepared.data.fingerprint,
          .tokenizer = prepared.job.data.tokenizer,
          .job_text = WriteJobConfig(prepared.job),
          .plan_text = ToString(prepared.plan, prepared.model.spec)};
}

}  // namespace

std::string CheckpointDirectory(const JobConfig& job) {
  if (!job.checkpoint.directory.empty()) return job.checkpoint.directory;
  return absl::StrCat(job.output.directory, "/checkpoints");
}

absl::StatusOr<std::string> FindStart(const JobConfig& job) {
  SIPHON_ASSIGN_OR_RETURN(std::string path, ChooseCheckpoint(job));
  if (!path.empty()) {
    SIPHON_RETURN_IF_ERROR(OpenToResume(job, path).status());
    return path;
  }
  const std::string& initial = job.model.init_from;
  std::error_code error;
  if (initial.empty() || std::filesystem::exists(initial, error)) return path;
  return ConfigError(job, "model.init_from", absl::StrCat(initial, ": no such file or folder"));
}

absl::StatusOr<Progress> RestoreState(const PreparedJob& prepared, const WorkerStages& stages,
                                      Coordinator& coordinator, const PhaseObserver& at_phase,
                                      std::vector<std::string>& warnings) {
  absl::StatusOr<std::string> chosen = std::string();
  if (coordinator.me().value == 0) chosen = ChooseCheckpoint(prepared.job);
  SIPHON_RETURN_IF_ERROR(coordinator.Agree(chosen.status()));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> paths, coordinator.GatherText(*chosen));
  absl::StatusOr<Progress> progress =
      paths[0].empty() ? StartFresh(prepared, stages, at_phase)
                       : ReadCheckpoint(prepared, stages, paths[0], at_phase, warnings);
  SIPHON_RETURN_IF_ERROR(coordinator.Agree(progress.status()));
  return progress;
}

absl::StatusOr<std::string> SaveState(const PreparedJob& prepared, const WorkerStages& stages,
                                      Coordinator& coordinator, const Progress& progress,
                                      const PhaseObserver& at_phase) {
  const bool first = coordinator.me().value == 0;
  absl::StatusOr<std::string> partial = std::string();
  if (first) partial = BeginCheckpoint(CheckpointDirectory(prepared.job), progress.step);
  SIPHON_RETURN_IF_ERROR(coordinator.Agree(partial.status()));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> partials,
                          coordinator.GatherText(*partial));

  absl::StatusOr<std::string> shard =
      WriteCheckpointShard(partials[0], coordinator.me().value, coordinator.workers(),
                           TensorsOf(stages, Which::kOwned, Access::kRead, at_phase));
  if (const absl::Status closed = Close(stages, shard.status()); !closed.ok()) shard = closed;
  if (const absl::Status status = at_phase(kCompletingPhase); !status.ok()) {
    shard = status;
  }
  if (const absl::Status agreed = coordinator.Agree(shard.status()); !agreed.ok()) {
    if (first) AbandonCheckpoint(partials[0]);
    return agreed;
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> shards, coordinator.GatherText(*shard));

  absl::StatusOr<std::string> finished = std::string();
  if (first) {
    finished = FinishCheckpoint(partials[0], InfoOf(prepared, progress), shards,
                                prepared.job.checkpoint.keep);
    if (!finished.ok()) AbandonCheckpoint(partials[0]);
  }
  SIPHON_RETURN_IF_ERROR(coordinator.Agree(finished.status()));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> paths, coordinator.GatherText(*finished));
  return paths[0];
}

}  // namespace siphon
