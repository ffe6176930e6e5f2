#ifndef SIPHON_TESTS_LAUNCH_RUN_SEATED_RUN_H_
#define SIPHON_TESTS_LAUNCH_RUN_SEATED_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/record/run_outcome.h"
#include "launch/run/seat/worker_seat.h"

namespace siphon {

// What is done to a worker's seat before it runs.
using SeatChange = std::function<void(WorkerSeat& seat)>;

struct SeatedRun {
  std::vector<absl::StatusOr<RunOutcome>> ends;  // [worker]
  std::string said;                              // on standard error
};

// Runs the job with its workers as threads, each at a seat that `change` (null: nothing) may alter.
// Where one of them fails, the others end, as Unavailable where they wait for it.
SeatedRun RunSeats(const PreparedJob& prepared, const SeatChange& change);

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_SEATED_RUN_H_
