#ifndef SIPHON_LAUNCH_RUN_RUN_WORKER_H_
#define SIPHON_LAUNCH_RUN_RUN_WORKER_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/run/prepare_job.h"
#include "launch/run/run_outcome.h"
#include "launch/run/training_state.h"
#include "pipeline/stage_worker.h"
#include "pipeline/transport/transport.h"
#include "planner/units.h"

namespace siphon {

// What a worker gets from the process or thread that it lives in.
struct WorkerSeat {
  WorkerId me;
  Transport* transport = nullptr;
  Bytes communication_bytes;   // rings that count as this worker's memory
  absl::Span<std::byte> lent;  // ParkingRegionBytes that all workers share; outlives the run
  std::function<bool()> stop_requested;
  StageWorker::ActionObserver at_action;  // before each action
  PhaseObserver at_phase;                 // before each phase outside the steps
  std::function<void(int64_t step, const std::string& checkpoint)>
      at_progress;  // after each step and checkpoint
};

// Trains: the whole run of one worker, collective with all others of the job. Worker 0 writes what
// the run leaves in the output directory and shows progress on standard error. Errors: the first
// that this worker meets, with place and cause.
absl::StatusOr<RunOutcome> RunWorker(const PreparedJob& prepared, const WorkerSeat& seat);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RUN_WORKER_H_
