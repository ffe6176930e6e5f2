#ifndef SIPHON_LAUNCH_RUN_JOB_LIMITS_H_
#define SIPHON_LAUNCH_RUN_JOB_LIMITS_H_

#include "launch/config/load_job_config.h"

namespace siphon {

enum class ModelSource {
  kJobFile,  // model.kind names it
  kProgram,  // a factory of the program's own, which may call its kinds what it likes
};

// The registries' names and this machine's memory, against which a job file is held.
ConfigLimits MachineLimits(ModelSource source);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_LIMITS_H_
