#ifndef SIPHON_SWAP_DEVICE_CUDA_STATUS_H_
#define SIPHON_SWAP_DEVICE_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace siphon {

// "cudaErrorIllegalAddress (700): an illegal memory access was encountered"
std::string CudaErrorText(cudaError_t error);

// OK, or Internal "<doing>: <CudaErrorText>"; ResourceExhausted for what is out of memory. The
// thread's last error is taken, so that no other library finds ours.
absl::Status CudaStatus(cudaError_t error, absl::string_view doing);

// FailedPrecondition for errors that mean that there is no device to compute on, OK for all others:
// one line, which names the way that is left.
absl::Status NoDeviceStatus(cudaError_t error);

// Makes a device the thread's current one, and the one before again. That makes a context on the
// one before, so it is for threads whose own device that is.
class CudaDeviceScope {
 public:
  explicit CudaDeviceScope(int device);
  ~CudaDeviceScope();
  CudaDeviceScope(const CudaDeviceScope&) = delete;
  CudaDeviceScope& operator=(const CudaDeviceScope&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  int before_ = 0;
  bool is_changed_ = false;
  absl::Status status_;
};

}  // namespace siphon

#define SIPHON_CUDA_RETURN_IF_ERROR(expression, doing) \
  SIPHON_RETURN_IF_ERROR(::siphon::CudaStatus((expression), (doing)))

#endif  // SIPHON_SWAP_DEVICE_CUDA_STATUS_H_
