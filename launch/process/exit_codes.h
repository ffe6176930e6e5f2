#ifndef SIPHON_LAUNCH_PROCESS_EXIT_CODES_H_
#define SIPHON_LAUNCH_PROCESS_EXIT_CODES_H_

#include "absl/status/status.h"

namespace siphon {

// What the shell sees of `siphon train`.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailure = 1;     // during the run
inline constexpr int kExitBadInput = 2;    // usage, configuration, input, surroundings
inline constexpr int kExitDoesNotFit = 3;  // the job's memory plan
inline constexpr int kExitStopped = 4;     // on request, with a checkpoint
inline constexpr int kExitWorkerLost = 5;
inline constexpr int kExitInterrupted = 130;  // a second SIGINT

// InvalidArgument and NotFound are the user's input, Unavailable is a peer that is gone, everything
// else a failure. Whether a ResourceExhausted means "does not fit" is known only where it arises:
// pass kExitDoesNotFit explicitly there.
inline int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kExitBadInput;
    case absl::StatusCode::kUnavailable:
      return kExitWorkerLost;
    default:
      return kExitFailure;
  }
}

// Of a run that has begun: memory that the job does not get is the job's plan not fitting; anything
// else has its own code.
inline int ExitCodeOfRun(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? kExitDoesNotFit : ExitCodeOf(status);
}

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_EXIT_CODES_H_
