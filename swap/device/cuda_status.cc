#include "swap/device/cuda_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace siphon {

std::string CudaErrorText(cudaError_t error) {
  return absl::StrCat(cudaGetErrorName(error), " (", static_cast<int>(error),
                      "): ", cudaGetErrorString(error));
}

absl::Status CudaStatus(cudaError_t error, absl::string_view doing) {
  if (error == cudaSuccess) return absl::OkStatus();
  static_cast<void>(cudaGetLastError());
  const std::string text = absl::StrCat(doing, ": ", CudaErrorText(error));
  return error == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(text)
                                            : absl::InternalError(text);
}

absl::Status NoDeviceStatus(cudaError_t error) {
  // Without a driver the runtime says that its version does not do.
  if (error != cudaErrorNoDevice && error != cudaErrorInsufficientDriver) return absl::OkStatus();
  static_cast<void>(cudaGetLastError());
  return absl::FailedPreconditionError(
      absl::StrCat("no CUDA: ",
                   error == cudaErrorNoDevice ? "the driver shows no device"
                                              : "there is no driver, or it is older than the "
                                                "toolkit that this was built with",
                   " (", cudaGetErrorName(error), ", ", static_cast<int>(error),
                   "); workers compute on the CPU here (pipeline.backend: cpu)"));
}

CudaDeviceScope::CudaDeviceScope(int device)
    : status_(CudaStatus(cudaGetDevice(&before_), "asking for the current device")) {
  if (!status_.ok() || device == before_) return;
  status_ = CudaStatus(cudaSetDevice(device), absl::StrCat("using device ", device));
  is_changed_ = status_.ok();
}

CudaDeviceScope::~CudaDeviceScope() {
  if (!is_changed_) return;
  static_cast<void>(cudaSetDevice(before_));
  static_cast<void>(cudaGetLastError());
}

}  // namespace siphon
