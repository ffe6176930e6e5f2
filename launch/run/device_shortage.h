#ifndef SIPHON_LAUNCH_RUN_DEVICE_SHORTAGE_H_
#define SIPHON_LAUNCH_RUN_DEVICE_SHORTAGE_H_

#include "absl/status/status.h"
#include "launch/run/lending.h"
#include "launch/run/seat_memory.h"

namespace siphon {

// Why a worker's run has ended: `status`; but where memory was refused that the worker's
// capacity had, and its device had not, that is FailedPrecondition, a failure during the run, since
// the job's plan fits. Says what the device had; all that `status` carries with it stays.
absl::Status WithDeviceShortage(const absl::Status& status, const SeatMemory& memory,
                                const Lending& lent);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_DEVICE_SHORTAGE_H_
