#ifndef SIPHON_LAUNCH_RUN_DEVICE_FAILURE_H_
#define SIPHON_LAUNCH_RUN_DEVICE_FAILURE_H_

#include "absl/status/status.h"
#include "launch/run/parking/lending.h"
#include "launch/run/seat/seat_memory.h"
#include "launch/run/seat/worker_seat.h"

namespace siphon {

// Why a worker's run has ended: `status`, and what its device has to say about it. Where memory was
// refused that the worker's capacity had, and its device had not, that is FailedPrecondition, a
// failure during the run, since the job's plan fits; it says what the device had. Where the device
// does nothing any more it is Internal, and says what to do. All that `status` carries with it
// stays.
absl::Status WithDeviceFailure(const absl::Status& status, const WorkerDevice* device,
                               const SeatMemory& memory, const Lending& lent);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_DEVICE_FAILURE_H_
