#ifndef SIPHON_SWAP_DEVICE_CUDA_EVENTS_H_
#define SIPHON_SWAP_DEVICE_CUDA_EVENTS_H_

#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siphon {

// Events of one device, without times (those cost ten times as much to record), used again and
// again. Thread-safety: any thread.
class CudaEventPool {
 public:
  explicit CudaEventPool(int device) : device_(device) {}
  // Requires: every event is back.
  ~CudaEventPool();
  CudaEventPool(const CudaEventPool&) = delete;
  CudaEventPool& operator=(const CudaEventPool&) = delete;

  // One that was recorded on `stream` just now. Errors: Internal.
  absl::StatusOr<cudaEvent_t> Record(cudaStream_t stream);
  void GiveBack(cudaEvent_t event);

 private:
  absl::StatusOr<cudaEvent_t> Take();

  const int device_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_ ABSL_GUARDED_BY(mutex_);
};

// Whether all that the event was recorded behind is done. Errors: Internal, also for what failed
// anywhere else on the device before.
absl::StatusOr<bool> HasFired(cudaEvent_t event);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_EVENTS_H_
