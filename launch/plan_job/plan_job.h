#ifndef SIPHON_LAUNCH_PLAN_JOB_PLAN_JOB_H_
#define SIPHON_LAUNCH_PLAN_JOB_PLAN_JOB_H_

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "planner/model_spec.h"
#include "planner/training_plan.h"

namespace siphon {

// Decides everything before the first step: partition, schedule, communication; each program
// validated. Pure. `validation_samples` bounds the microbatches of an evaluation (0:
// plan.evaluation stays empty). Errors: InvalidArgument with the key's place in the job file for
// what the user can mend; FailedPrecondition for a schedule that does not validate.
absl::StatusOr<TrainingPlan> PlanJob(const JobConfig& job, const ModelSpec& model,
                                     int64_t validation_samples);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PLAN_JOB_PLAN_JOB_H_
