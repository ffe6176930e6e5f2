#ifndef SIPHON_SWAP_DEVICE_CUDA_HEALTH_H_
#define SIPHON_SWAP_DEVICE_CUDA_HEALTH_H_

#include "absl/status/status.h"

namespace siphon {

// Whether this process can go on with the device. An error that a device finds while it works, of
// its memory, its wires or a kernel, sticks: every call returns it from then on, whoever makes it,
// until the process ends. Waits for nothing. Errors: Internal, with the device's place in the
// machine, the error and what to do about it.
absl::Status CudaHealth(int device);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_HEALTH_H_
