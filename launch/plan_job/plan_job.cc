#include "launch/plan_job/plan_job.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

int Chunks(const JobConfig& job) { return std::max<int>(1, static_cast<int>(job.pipeline.chunks)); }

// Stages / chunks.
absl::StatusOr<int> WorkerCount(const JobConfig& job) {
  const int stages = static_cast<int>(job.pipeline.stages);
  const int chunks = Chunks(job);
  if (stages % chunks != 0) {
    return ConfigError(job, "pipeline.chunks",
                       absl::StrCat(chunks, " chunks a worker do not divide ", stages, " stages"));
  }
  return stages / chunks;
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

// Lowered and validated; `shared` only matters for training.
absl::StatusOr<Schedule> Lower(Schedule schedule, SchedulePurpose purpose,
                               const std::vector<SharedParameter>& shared) {
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(schedule, purpose));
  SIPHON_ASSIGN_OR_RETURN(Schedule lowered, InsertCommunication(std::move(schedule)));
  if (purpose == SchedulePurpose::kTraining) {
    std::set<StageId> sharing;
    for (const SharedParameter& parameter : shared) {
      sharing.insert(parameter.stages.begin(), parameter.stages.end());
    }
    lowered = AppendOptimizerStep(std::move(lowered), {sharing.begin(), sharing.end()});
  }
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(lowered, purpose));
  return lowered;
}

}  // namespace

absl::StatusOr<TrainingPlan> PlanJob(const JobConfig& job, const ModelSpec& model,
                                     int64_t validation_samples) {
  TrainingPlan plan;
  plan.schedule_name = job.pipeline.schedule;
  plan.global_batch = job.train.global_batch;
  plan.microbatch = job.train.microbatch;
  SIPHON_ASSIGN_OR_RETURN(plan.partition, Partition(job, model));
  plan.shared_parameters = SharedParameters(model, plan.partition);

  ScheduleShape shape;
  SIPHON_ASSIGN_OR_RETURN(shape.workers, WorkerCount(job));
  shape.chunks = Chunks(job);
  shape.microbatches = static_cast<int>(plan.global_batch / plan.microbatch);
  auto schedule = BuildSchedule(plan.schedule_name, shape);
  if (!schedule.ok()) return ConfigError(job, "pipeline.schedule", schedule.status().message());
  SIPHON_ASSIGN_OR_RETURN(plan.training,
                          Lower(*schedule, SchedulePurpose::kTraining, plan.shared_parameters));

  const int64_t evaluated =
      std::min<int64_t>(shape.microbatches, validation_samples / plan.microbatch);
  if (evaluated > 0) {
    SIPHON_ASSIGN_OR_RETURN(plan.evaluation,
                            Lower(BuildForwardOnly(*schedule, static_cast<int>(evaluated)),
                                  SchedulePurpose::kForwardOnly, {}));
  }
  return plan;
}

}  // namespace siphon
