#ifndef SIPHON_LAUNCH_RUN_PARKING_LOCKED_MEMORY_H_
#define SIPHON_LAUNCH_RUN_PARKING_LOCKED_MEMORY_H_

#include "absl/status/status.h"
#include "launch/run/job/prepare_job.h"
#include "planner/units.h"

namespace siphon {

// What workers on devices may lock of it, all together: seven eighths. The rest is for the system,
// the processes themselves and the data; a machine with more locked swaps all of that, or kills
// somebody.
Bytes LockedAtMost(Bytes machine_memory);

// Whether what the plan has on the host, all of it locked, is no more than that. Errors:
// ResourceExhausted, with what is asked and allowed, and what to write.
absl::Status CheckLockedMemory(const PreparedJob& prepared, Bytes machine_memory);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_LOCKED_MEMORY_H_
