#ifndef SIPHON_PIPELINE_TORCH_TORCH_DEVICE_H_
#define SIPHON_PIPELINE_TORCH_TORCH_DEVICE_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/torch/compute_device.h"
#include "planner/units.h"

namespace siphon {

// What LibTorch has of a device, in this process.
struct TorchMemory {
  Bytes in_use;     // by tensors and workspaces, rounded up to its blocks
  Bytes peak;       // of in_use, since ResetPeak
  Bytes held;       // of the device: in use, and kept for reuse; never more than the limit
  Bytes peak_held;  // since ResetPeak
};

// Memory that a device did not have though LibTorch might take it: somebody else has it.
struct DeviceShortage {
  Bytes asked;
  Bytes held;   // by LibTorch in this process, then
  Bytes limit;  // that it had
  Bytes free;   // of the device
};

// A device beside the CPU as one thread computes on it with LibTorch; no LibTorch in here. What the
// thread calls goes onto a stream of its own, and so do backward passes, which LibTorch runs on
// another thread under the stream of the forward.
//
// Thread-safety: one thread, the one that opened it; the stream is its as long as this lives.
class TorchDevice {
 public:
  virtual ~TorchDevice() = default;
  virtual ComputeDevice device() const = 0;
  // That stream (a cudaStream_t). None: what was called is done.
  virtual std::optional<void*> work_stream() const = 0;
  // From now on LibTorch takes at most so much of the device (where its segments grow, 20 MiB
  // less), and throws c10::OutOfMemoryError beyond it. Gives back what it keeps for reuse first.
  // Errors: ResourceExhausted when tensors hold more already.
  virtual absl::Status Limit(Bytes most) = 0;
  virtual TorchMemory memory() const = 0;
  virtual void ResetPeak() = 0;
  // Of the last c10::OutOfMemoryError of this thread's tensors, where that was one.
  virtual std::optional<DeviceShortage> shortage() const = 0;
};

// Whether LibTorch's kernels for the device shall be there. Without them tensors can be made and
// nothing can be computed: for tests on a runtime that runs no kernels.
enum class TorchKernels { kLoad, kLeaveOut };

// What the shared object siphon_torch_cuda gives; whoever uses it links nothing of CUDA
// (load_torch_cuda.h).
class TorchCudaModule {
 public:
  virtual ~TorchCudaModule() = default;
  // How many devices are visible: at least one. Makes no context on any. Errors: as Open.
  virtual absl::StatusOr<int> Devices() const = 0;
  // The device of that number among the visible ones, for the calling thread. Errors:
  // FailedPrecondition, in one line, where LibTorch's CUDA libraries, a driver or the device are
  // missing; Internal.
  virtual absl::StatusOr<std::unique_ptr<TorchDevice>> Open(int device,
                                                            TorchKernels kernels) const = 0;
};

// Of this header and those that it includes; a module with another number is refused.
inline constexpr int kTorchCudaInterface = 2;

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_TORCH_DEVICE_H_
