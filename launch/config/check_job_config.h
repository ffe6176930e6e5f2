#ifndef SIPHON_LAUNCH_CONFIG_CHECK_JOB_CONFIG_H_
#define SIPHON_LAUNCH_CONFIG_CHECK_JOB_CONFIG_H_

#include "absl/status/status.h"
#include "launch/config/job_config.h"
#include "launch/config/load_job_config.h"

namespace siphon {

// Holds the keys of a job against each other and against the machine, after each has passed on its
// own: divisibility, lengths of lists, products within 64 bits, capacities within the machine's
// memory. A job that was made in C++ is checked by it too. Errors: InvalidArgument as ConfigError,
// naming both values and the nearest right ones.
absl::Status CheckJobConfig(const JobConfig& job, const ConfigLimits& limits);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_CHECK_JOB_CONFIG_H_
