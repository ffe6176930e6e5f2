#ifndef SIPHON_LAUNCH_RUN_SAME_JOB_H_
#define SIPHON_LAUNCH_RUN_SAME_JOB_H_

#include "absl/status/status.h"
#include "launch/mpi_world.h"
#include "launch/run/prepare_job.h"

namespace siphon {

// Whether all ranks, each of which has prepared the job by itself, have come to the same: not so
// where mpirun started some with other settings, or where hosts differ in something that a plan is
// made of. Collective. Errors, on all ranks alike: InvalidArgument with two ranks that differ.
absl::Status CheckSameJob(const PreparedJob& prepared, MpiWorld& world);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SAME_JOB_H_
