#include "swap/device/cuda_events.h"

#include "planner/status.h"
#include "swap/device/cuda_status.h"

namespace siphon {

CudaEventPool::~CudaEventPool() {
  for (const cudaEvent_t event : free_) static_cast<void>(cudaEventDestroy(event));
}

absl::StatusOr<cudaEvent_t> CudaEventPool::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  const CudaDeviceScope scope(device_);
  SIPHON_RETURN_IF_ERROR(scope.status());
  cudaEvent_t event = nullptr;
  SIPHON_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                              "making an event");
  return event;
}

absl::StatusOr<cudaEvent_t> CudaEventPool::Record(cudaStream_t stream) {
  SIPHON_ASSIGN_OR_RETURN(const cudaEvent_t event, Take());
  const absl::Status recorded = CudaStatus(cudaEventRecord(event, stream), "recording an event");
  if (recorded.ok()) return event;
  GiveBack(event);
  return recorded;
}

void CudaEventPool::GiveBack(cudaEvent_t event) {
  const std::lock_guard lock(mutex_);
  free_.push_back(event);
}

absl::StatusOr<bool> HasFired(cudaEvent_t event) {
  const cudaError_t answer = cudaEventQuery(event);
  if (answer == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  SIPHON_RETURN_IF_ERROR(CudaStatus(answer, "asking whether a copy is complete"));
  return true;
}

}  // namespace siphon
