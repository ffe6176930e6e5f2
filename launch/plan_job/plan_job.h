#ifndef SIPHON_LAUNCH_PLAN_JOB_PLAN_JOB_H_
#define SIPHON_LAUNCH_PLAN_JOB_PLAN_JOB_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/config/job_config.h"
#include "planner/model_spec.h"
#include "planner/training_plan.h"

namespace siphon {

// Decides everything before the first step: partition, schedule, communication; each program
// validated. Replicas of the pipeline share the global batch. Pure. `validation_samples` bounds the
// microbatches of an evaluation (0: plan.evaluation stays empty). `schedule_csv` is the text that
// ReadScheduleFile gives. Errors: InvalidArgument with the key's place in the job file for what the
// user can mend; FailedPrecondition for a schedule that does not validate.
absl::StatusOr<TrainingPlan> PlanJob(const JobConfig& job, const ModelSpec& model,
                                     int64_t validation_samples,
                                     absl::string_view schedule_csv = "");

// How many workers the job's schedule deals its stages out to, before anything else is decided.
// Errors: InvalidArgument with the key's place.
absl::StatusOr<int> WorkersOf(const JobConfig& job, absl::string_view schedule_csv);

// Whether workers can run what was planned: they hold one version of their weights and one copy of
// the pipeline, and know no norm of all gradients before a stage steps by itself.
// Errors: InvalidArgument naming the keys.
absl::Status CheckTrainable(const JobConfig& job, const TrainingPlan& plan);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PLAN_JOB_PLAN_JOB_H_
