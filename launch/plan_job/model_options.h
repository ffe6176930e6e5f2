#ifndef SIPHON_LAUNCH_PLAN_JOB_MODEL_OPTIONS_H_
#define SIPHON_LAUNCH_PLAN_JOB_MODEL_OPTIONS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "planner/model_spec.h"

namespace siphon {

// Options of the model as the job has them. `data_ids` is the number of different ids that the data
// needs by itself (256 for bytes; 0: it takes whatever the model has): a vocabulary of 0 is
// replaced by them, and bert's mask id comes on top. Attention is written out where CUDA devices
// have no fused kernel for its shape. Errors: InvalidArgument at model.vocabulary when it is too
// small.
absl::StatusOr<ModelOptions> ModelOptionsOf(const JobConfig& job, int64_t data_ids);

// Which of the job's keys to blame for what BuildModelSpec refuses: its message begins with the
// key.
absl::Status ModelError(const JobConfig& job, const absl::Status& status);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PLAN_JOB_MODEL_OPTIONS_H_
