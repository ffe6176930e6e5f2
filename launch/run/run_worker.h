#ifndef SIPHON_LAUNCH_RUN_RUN_WORKER_H_
#define SIPHON_LAUNCH_RUN_RUN_WORKER_H_

#include "absl/status/statusor.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/record/run_outcome.h"
#include "launch/run/seat/worker_seat.h"

namespace siphon {

// Trains: the whole run of one worker, collective with all others of the job. Worker 0 writes what
// the run leaves in the output directory and shows progress on standard error. Errors: the first
// that this worker meets, with place and cause.
absl::StatusOr<RunOutcome> RunWorker(const PreparedJob& prepared, const WorkerSeat& seat);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RUN_WORKER_H_
