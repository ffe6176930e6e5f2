#include "swap/device/cuda_peers.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_status.h"

namespace siphon {

absl::StatusOr<bool> CudaReaches(int device, int peer) {
  if (device == peer) return true;
  int can = 0;
  SIPHON_CUDA_RETURN_IF_ERROR(
      cudaDeviceCanAccessPeer(&can, device, peer),
      absl::StrCat("asking whether device ", device, " reaches device ", peer));
  return can != 0;
}

absl::Status AllowCudaPeer(int device, int owner) {
  if (device == owner) return absl::OkStatus();
  const CudaDeviceScope scope(device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  const cudaError_t error = cudaDeviceEnablePeerAccess(owner, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    static_cast<void>(cudaGetLastError());
    return absl::OkStatus();
  }
  return CudaStatus(error,
                    absl::StrCat("letting device ", device, " use memory of device ", owner));
}

}  // namespace siphon
