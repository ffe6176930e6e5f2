#ifndef SIPHON_LAUNCH_RUN_SHARED_DIRECTORY_H_
#define SIPHON_LAUNCH_RUN_SHARED_DIRECTORY_H_

#include "absl/status/status.h"
#include "launch/config/job_config.h"
#include "launch/mpi_world.h"

namespace siphon {

// Whether all hosts see in the directory of the job's checkpoints what rank 0 writes there; OK
// where the job neither writes nor reads any, and on one host. Collective; makes the directory.
// Errors, on all ranks alike: InvalidArgument with the key and who does not see it.
absl::Status CheckCheckpointsAreShared(const JobConfig& job, MpiWorld& world);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SHARED_DIRECTORY_H_
