#ifndef SIPHON_LAUNCH_PLAN_JOB_LEARNING_RATE_H_
#define SIPHON_LAUNCH_PLAN_JOB_LEARNING_RATE_H_

#include <cstdint>

#include "launch/config/job_config.h"

namespace siphon {

// The learning rate of a step (from 0): linear warm-up to train.learning_rate over warmup_steps
// (step 0 gets 1 / warmup of it), then cosine or linear down to final_learning_rate_fraction of it
// at the last step, or constant.
double LearningRateAt(const TrainConfig& train, int64_t step);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PLAN_JOB_LEARNING_RATE_H_
