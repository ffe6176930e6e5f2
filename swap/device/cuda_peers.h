#ifndef SIPHON_SWAP_DEVICE_CUDA_PEERS_H_
#define SIPHON_SWAP_DEVICE_CUDA_PEERS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siphon {

// Whether copies that `device` issues reach memory of `peer` without the host; itself: yes.
// Errors: Internal.
absl::StatusOr<bool> CudaReaches(int device, int peer);

// Lets copies of `device` reach memory of `owner`, of this process; once or again.
// Errors: Internal.
absl::Status AllowCudaPeer(int device, int owner);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_PEERS_H_
