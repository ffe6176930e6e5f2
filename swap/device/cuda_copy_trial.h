#ifndef SIPHON_SWAP_DEVICE_CUDA_COPY_TRIAL_H_
#define SIPHON_SWAP_DEVICE_CUDA_COPY_TRIAL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "swap/device/copy_trial.h"

namespace siphon {

// Runs the trial and returns a figure for each path, in their order. What arrived is compared with
// what was sent, at the begin and end of each chunk. Memory is taken for the trial alone.
// Errors: InvalidArgument for sizes that are no whole chunks; ResourceExhausted; Internal, of the
// runtime, or when something else arrived than was sent; DeadlineExceeded after a minute.
// Thread-safety: one thread, while nothing else copies.
absl::StatusOr<std::vector<CopyFigure>> RunCudaCopyTrial(const CopyTrial& trial);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_COPY_TRIAL_H_
