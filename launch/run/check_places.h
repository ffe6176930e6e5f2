#ifndef SIPHON_LAUNCH_RUN_CHECK_PLACES_H_
#define SIPHON_LAUNCH_RUN_CHECK_PLACES_H_

#include "absl/status/status.h"
#include "launch/config/job_config.h"

namespace siphon {

// Whether the job's output, checkpoints and what it parks on a drive can be written where it says,
// asked before any worker starts; makes nothing. Errors: InvalidArgument with the key and what
// stands in the way.
absl::Status CheckPlaces(const JobConfig& job);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_CHECK_PLACES_H_
