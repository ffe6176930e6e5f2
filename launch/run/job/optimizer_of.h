#ifndef SIPHON_LAUNCH_RUN_JOB_OPTIMIZER_OF_H_
#define SIPHON_LAUNCH_RUN_JOB_OPTIMIZER_OF_H_

#include "launch/config/job_config.h"
#include "pipeline/torch/determinism.h"
#include "pipeline/torch/torch_stage.h"

namespace siphon {

inline OptimizerOptions OptimizerOf(const TrainConfig& train) {
  return {.name = train.optimizer,
          .weight_decay = train.weight_decay,
          .beta1 = train.beta1,
          .beta2 = train.beta2,
          .momentum = train.momentum};
}

inline Determinism DeterminismOf(const TrainConfig& train) {
  return train.deterministic ? Determinism::kRequired : Determinism::kNotRequired;
}

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_OPTIMIZER_OF_H_
