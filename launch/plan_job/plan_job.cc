#include "launch/plan_job/plan_job.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

bool Takes(const ScheduleEntry& entry, absl::string_view option) {
  return std::find(entry.options.begin(), entry.options.end(), option) != entry.options.end();
}

// The job's, as far as the schedule takes them: a job file may carry options of another schedule.
ScheduleOptions OptionsFor(const ScheduleEntry& entry, const PipelineConfig& pipeline,
                           absl::string_view csv) {
  ScheduleOptions options;
  if (Takes(entry, "in_flight")) options.in_flight_limit = static_cast<int>(pipeline.in_flight);
  if (Takes(entry, "warm_up") && pipeline.warm_up == "b") options.warm_up = WarmUpPolicy::kB;
  if (Takes(entry, "depth")) options.depth.assign(pipeline.depth.begin(), pipeline.depth.end());
  if (Takes(entry, "forward_pack")) {
    options.forward_pack = static_cast<int>(pipeline.forward_pack);
  }
  if (Takes(entry, "backward_pack")) {
    options.backward_pack = static_cast<int>(pipeline.backward_pack);
  }
  if (Takes(entry, "microbatch_group")) {
    options.microbatch_group = static_cast<int>(pipeline.microbatch_group);
  }
  if (Takes(entry, "backward_group")) {
    options.backward_group = static_cast<int>(pipeline.backward_group);
  }
  if (Takes(entry, "csv")) options.csv = std::string(csv);
  return options;
}

absl::StatusOr<ScheduleEntry> Entry(const JobConfig& job) {
  absl::StatusOr<ScheduleEntry> entry = FindSchedule(job.pipeline.schedule);
  if (!entry.ok()) return ConfigError(job, "pipeline.schedule", entry.status().message());
  return entry;
}

// Workers = stages / chunks, where the job says how many chunks or the schedule does. A schedule
// from a file has the file's workers. Its microbatches are those of the whole batch.
absl::StatusOr<ScheduleShape> Shape(const JobConfig& job, const ScheduleEntry& entry,
                                    absl::string_view csv) {
  const int stages = static_cast<int>(job.pipeline.stages);
  ScheduleShape shape;
  shape.microbatches = static_cast<int>(job.train.global_batch / job.train.microbatch);
  shape.options = OptionsFor(entry, job.pipeline, csv);
  shape.chunks = job.pipeline.chunks > 0 ? static_cast<int>(job.pipeline.chunks) : entry.chunks;
  if (job.pipeline.chunks == 0 && Takes(entry, "csv")) {
    const absl::StatusOr<Schedule> file = ParseScheduleCsv(csv);
    if (!file.ok()) return ConfigError(job, "pipeline.schedule_file", file.status().message());
    // Its workers may hold different numbers of stages: then it is the file's to say which.
    shape.workers = WorkerCount(*file);
    shape.chunks = std::max(1, stages / shape.workers);
    if (stages == StageCount(*file)) return shape;
  }
  if (stages % shape.chunks != 0) {
    const bool given = job.pipeline.chunks > 0;
    if (given) {
      // One that takes no such number of chunks would refuse any number of stages.
      shape.workers = std::max(1, stages / shape.chunks);
      const absl::Status refused = BuildSchedule(entry.name, shape).status();
      if (!refused.ok()) return ConfigError(job, "pipeline.chunks", refused.message());
    }
    if (given && shape.chunks > stages) {
      return ConfigError(job, "pipeline.chunks",
                         absl::StrCat(shape.chunks, " stages a worker, but pipeline.stages is ",
                                      stages, "; at most ", stages, " work"));
    }
    return ConfigError(
        job, given ? "pipeline.chunks" : "pipeline.stages",
        absl::StrCat(
            stages, " stages cannot be dealt out in chunks of ", shape.chunks, " a worker",
            given ? "" : absl::StrCat(", as many as schedule ", entry.name, " has by default"),
            "; stages must be a multiple of pipeline.chunks"));
  }
  shape.workers = stages / shape.chunks;
  return shape;
}

absl::Status DoesNotDivide(const JobConfig& job, const ScheduleEntry& entry, int microbatches,
                           int replicas) {
  const auto is_given = [&](const char* key) { return job.origins.contains(key); };
  const char* const key = is_given("train.global_batch") ? "train.global_batch"
                          : is_given("train.microbatch") ? "train.microbatch"
                                                         : "pipeline.schedule";
  return ConfigError(
      job, key,
      absl::StrCat(job.train.global_batch, " sequences are ", microbatches, " microbatches of ",
                   job.train.microbatch, ", which the ", replicas, " replicas of ", entry.name,
                   " cannot share alike; train.global_batch must be a multiple of ",
                   job.train.microbatch * replicas));
}

// Replicas share the microbatches of the batch: each has so many of them as its schedule says.
absl::StatusOr<Schedule> Build(const JobConfig& job, const ScheduleEntry& entry,
                               ScheduleShape shape) {
  const auto build = [&]() -> absl::StatusOr<Schedule> {
    absl::StatusOr<Schedule> schedule = BuildSchedule(entry.name, shape);
    if (schedule.ok()) return schedule;
    return ConfigError(job, Takes(entry, "csv") ? "pipeline.schedule_file" : "pipeline.schedule",
                       schedule.status().message());
  };
  SIPHON_ASSIGN_OR_RETURN(Schedule alone, build());
  if (alone.replicas == 1) return alone;
  if (shape.microbatches % alone.replicas != 0) {
    return DoesNotDivide(job, entry, shape.microbatches, alone.replicas);
  }
  shape.microbatches /= alone.replicas;
  return build();
}

absl::StatusOr<StagePartition> Partition(const JobConfig& job, const ModelSpec& model) {
  const int layers = static_cast<int>(model.layers.size());
  const int stages = static_cast<int>(job.pipeline.stages);
  if (stages > layers) {
    return ConfigError(job, "pipeline.stages",
                       absl::StrCat(stages, " stages, but the model has ", layers,
                                    " layers to cut; at most ", layers, " stages work"));
  }
  absl::StatusOr<StagePartition> partition;
  if (!job.pipeline.partition_layers.empty()) {
    const auto& given = job.pipeline.partition_layers;
    partition = ExplicitPartition(model, std::vector<int>(given.begin(), given.end()));
  } else {
    partition = PartitionModel(model, stages, job.pipeline.partition);
  }
  if (!partition.ok()) {
    return ConfigError(job, "pipeline.partition", partition.status().message());
  }
  return partition;
}

absl::Status CheckCapacities(const JobConfig& job, const Schedule& schedule) {
  const size_t given = job.memory.capacity.size();
  const auto workers = static_cast<size_t>(WorkerCount(schedule) * schedule.replicas);
  if (given <= 1 || given == workers) return absl::OkStatus();
  return ConfigError(job, "memory.capacity",
                     absl::StrCat("lists ", given, " capacities for ", workers,
                                  " workers; write one for all, or one for each"));
}

// Whether a step hangs on the norm of all gradients.
NormPlace NormPlaceOf(const JobConfig& job) {
  const bool needs_norm = job.train.clip_norm > 0 || ScalesLoss(job.train);
  return needs_norm ? NormPlace::kBeforeSteps : NormPlace::kBehindSteps;
}

// Lowered and validated; `shared` and `norm` only matter for training.
absl::StatusOr<Schedule> Lower(Schedule schedule, SchedulePurpose purpose,
                               const std::vector<SharedParameter>& shared, NormPlace norm) {
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(schedule, purpose));
  SIPHON_ASSIGN_OR_RETURN(Schedule lowered, InsertCommunication(std::move(schedule)));
  if (purpose == SchedulePurpose::kTraining) {
    std::set<StageId> sharing;
    for (const SharedParameter& parameter : shared) {
      sharing.insert(parameter.stages.begin(), parameter.stages.end());
    }
    lowered = AppendOptimizerStep(std::move(lowered), {sharing.begin(), sharing.end()}, norm);
  }
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(lowered, purpose));
  return lowered;
}

}  // namespace

absl::StatusOr<TrainingPlan> PlanJob(const JobConfig& job, const ModelSpec& model,
                                     int64_t validation_samples, absl::string_view schedule_csv) {
  TrainingPlan plan;
  plan.schedule_name = job.pipeline.schedule;
  plan.global_batch = job.train.global_batch;
  plan.microbatch = job.train.microbatch;
  SIPHON_ASSIGN_OR_RETURN(plan.partition, Partition(job, model));
  plan.shared_parameters = SharedParameters(model, plan.partition);

  SIPHON_ASSIGN_OR_RETURN(const ScheduleEntry entry, Entry(job));
  SIPHON_ASSIGN_OR_RETURN(const ScheduleShape shape, Shape(job, entry, schedule_csv));
  SIPHON_ASSIGN_OR_RETURN(const Schedule schedule, Build(job, entry, shape));
  if (StageCount(schedule) != static_cast<int>(job.pipeline.stages)) {
    return ConfigError(
        job, "pipeline.stages",
        absl::StrCat(job.pipeline.stages, " stages, but pipeline.schedule_file is for ",
                     StageCount(schedule), "; write ", StageCount(schedule)));
  }
  SIPHON_RETURN_IF_ERROR(CheckCapacities(job, schedule));
  SIPHON_ASSIGN_OR_RETURN(plan.training, Lower(schedule, SchedulePurpose::kTraining,
                                               plan.shared_parameters, NormPlaceOf(job)));

  const int64_t evaluated =
      std::min<int64_t>(schedule.microbatches, validation_samples / plan.microbatch);
  if (evaluated > 0) {
    SIPHON_ASSIGN_OR_RETURN(plan.evaluation,
                            Lower(BuildForwardOnly(schedule, static_cast<int>(evaluated)),
                                  SchedulePurpose::kForwardOnly, {}, NormPlaceOf(job)));
  }
  return plan;
}

absl::StatusOr<int> WorkersOf(const JobConfig& job, absl::string_view schedule_csv) {
  SIPHON_ASSIGN_OR_RETURN(const ScheduleEntry entry, Entry(job));
  SIPHON_ASSIGN_OR_RETURN(const ScheduleShape shape, Shape(job, entry, schedule_csv));
  return shape.workers;
}

absl::Status CheckTrainable(const JobConfig& job, const TrainingPlan& plan) {
  const absl::StatusOr<ScheduleEntry> entry = FindSchedule(plan.schedule_name);
  if (!entry.ok()) return ConfigError(job, "pipeline.schedule", entry.status().message());
  if (entry->update == WeightUpdate::kAsynchronous) {
    return ConfigError(
        job, "pipeline.schedule",
        absl::StrCat(entry->name,
                     " updates weights asynchronously, which workers cannot do: they "
                     "keep one version of the weights; it can be planned and "
                     "simulated"));
  }
  if (plan.training.replicas > 1) {
    return ConfigError(job, "pipeline.schedule",
                       absl::StrCat(entry->name, " runs ", plan.training.replicas,
                                    " replicas, but workers run one copy of the pipeline; it can "
                                    "be planned and simulated"));
  }
  if (entry->update == WeightUpdate::kJustInTime && job.train.clip_norm > 0) {
    return ConfigError(
        job, "train.clip_norm",
        absl::StrCat(job.train.clip_norm, ", but pipeline.schedule ", entry->name,
                     " updates each stage before the norm of all gradients is known; write 0"));
  }
  if (entry->update == WeightUpdate::kJustInTime && ScalesLoss(job.train)) {
    return ConfigError(
        job, "train.precision",
        absl::StrCat(job.train.precision, ", but pipeline.schedule ", entry->name,
                     " updates each stage before it is known whether all gradients are numbers, "
                     "which its loss scale has to know; write bf16"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
