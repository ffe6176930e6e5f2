#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/device/load_torch_cuda.h"
#include "pipeline/torch/device/torch_device.h"
#include "planner/status.h"

namespace c10::cuda::_internal {
// libtorch_cuda calls it when it is loaded; no header has it.
C10_CUDA_API void setHasPrimaryContext(bool (*has)(DeviceIndex));
}  // namespace c10::cuda::_internal

namespace siphon {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

// Of all pools together.
const c10::CachingAllocator::Stat& Sum(const c10::CachingAllocator::StatArray& stats) {
  return stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

// What LibTorch's allocator tells, for good, of each device that had too little.
//
// Thread-safety: any thread.
class OutOfMemoryNotes {
 public:
  static OutOfMemoryNotes& The() {
    static auto* const notes = new OutOfMemoryNotes();  // the allocator keeps it to the end
    return *notes;
  }
  void Note(int64_t device, size_t asked, size_t free) {
    const auto stats = caching::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    const std::lock_guard lock(mutex_);
    last_[device] = {.asked = Bytes(static_cast<int64_t>(asked)),
                     .held = Bytes(Sum(stats.reserved_bytes).current),
                     .free = Bytes(static_cast<int64_t>(free))};
  }
  std::optional<DeviceShortage> LastOf(int64_t device) {
    const std::lock_guard lock(mutex_);
    const auto last = last_.find(device);
    return last == last_.end() ? std::nullopt : std::optional(last->second);
  }
  void Forget(int64_t device) {
    const std::lock_guard lock(mutex_);
    last_.erase(device);
  }

 private:
  OutOfMemoryNotes() {
    caching::attachOutOfMemoryObserver([this](int64_t device, size_t asked, size_t /*of*/,
                                              size_t free) { Note(device, asked, free); });
  }
  std::mutex mutex_;
  std::map<int64_t, DeviceShortage> last_ ABSL_GUARDED_BY(mutex_);
};

// What LibTorch's allocator may take beyond the fraction that it is given: it compares what a
// tensor needs, and takes whole pieces of segments that grow.
Bytes BeyondLimit() {
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  return Bytes(
      Config::use_expandable_segments() ? static_cast<int64_t>(Config::large_segment_size()) : 0);
}

class CudaTorchDevice final : public TorchDevice {
 public:
  CudaTorchDevice(c10::DeviceIndex index, size_t memory, c10::cuda::CUDAStream stream)
      : index_(index), memory_(memory), limit_(static_cast<int64_t>(memory)), stream_(stream) {
    OutOfMemoryNotes::The().Forget(index);
  }
  ~CudaTorchDevice() override {
    CallTorch("leaving a device", [&] {
      c10::cuda::setCurrentCUDAStream(c10::cuda::getDefaultCUDAStream(index_));
    }).IgnoreError();
  }

  ComputeDevice device() const override { return {ComputeDevice::Kind::kCuda, index_}; }
  std::optional<void*> work_stream() const override { return stream_.stream(); }

  absl::Status Limit(Bytes most) override {
    return CallTorch("limiting what LibTorch takes of a device", [&]() -> absl::Status {
      caching::emptyCache();
      const Bytes held = memory().held;
      if (held > most) {
        return absl::ResourceExhaustedError(absl::StrCat("tensors hold ", FormatBytes(held),
                                                         " of device ", index_, ", and may hold ",
                                                         FormatBytes(most)));
      }
      const Bytes taken = std::max(most - BeyondLimit(), Bytes(0));
      // Rounding may cost a byte, and never gives one.
      const double part = static_cast<double>(taken.value) / static_cast<double>(memory_);
      caching::setMemoryFraction(part < 1 ? part : 1, index_);
      limit_ = std::min(taken, Bytes(static_cast<int64_t>(memory_)));
      return absl::OkStatus();
    });
  }

  TorchMemory memory() const override {
    const auto stats = caching::getDeviceStats(index_);
    return {.in_use = Bytes(Sum(stats.allocated_bytes).current),
            .peak = Bytes(Sum(stats.allocated_bytes).peak),
            .held = Bytes(Sum(stats.reserved_bytes).current),
            .peak_held = Bytes(Sum(stats.reserved_bytes).peak)};
  }
  void ResetPeak() override { caching::resetPeakStats(index_); }
  std::optional<DeviceShortage> shortage() const override {
    std::optional<DeviceShortage> last = OutOfMemoryNotes::The().LastOf(index_);
    if (!last.has_value() || last->held + last->asked > limit_) return std::nullopt;
    last->limit = limit_;
    return last;
  }

 private:
  const c10::DeviceIndex index_;
  const size_t memory_;  // of the device
  Bytes limit_;
  const c10::cuda::CUDAStream stream_;
};

// LibTorch's kernels register themselves when they are loaded. They bring cuBLAS, cuDNN and NCCL.
absl::Status LoadKernels() {
  // Beside libc10_cuda.so, where this object looks for that too.
  void* const library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return NoTorchCuda(
        absl::StrCat(dlerror(), " (pip install torch==" TORCH_VERSION " brings what it needs)"));
  }
  return CallTorch("starting CUDA in LibTorch",
                   [] { at::globalContext().lazyInitDevice(c10::DeviceType::CUDA); });
}

class ModuleOfThisObject final : public TorchCudaModule {
 public:
  absl::StatusOr<int> Devices() const override {
    int devices = 0;
    const cudaError_t counted = cudaGetDeviceCount(&devices);
    if (counted != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return NoTorchCuda(cudaGetErrorString(counted));
    }
    if (devices == 0) return NoTorchCuda(cudaGetErrorString(cudaErrorNoDevice));
    return devices;
  }

  absl::StatusOr<std::unique_ptr<TorchDevice>> Open(int device,
                                                    TorchKernels kernels) const override {
    SIPHON_ASSIGN_OR_RETURN(const int devices, Devices());
    if (device < 0 || device >= devices) {
      return NoTorchCuda(absl::StrCat("there is no device ", device, ", there are ", devices));
    }
    if (kernels == TorchKernels::kLoad) {
      SIPHON_RETURN_IF_ERROR(LoadKernels());
    } else {
      c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    }
    return CallTorch(absl::StrCat("opening CUDA device ", device),
                     [&] { return OpenExisting(device, devices); });
  }

 private:
  static absl::StatusOr<std::unique_ptr<TorchDevice>> OpenExisting(int device, int devices) {
    const auto index = static_cast<c10::DeviceIndex>(device);
    caching::init(devices);  // done already where kernels are there
    c10::cuda::set_device(index);
    cudaDeviceProp properties;
    const cudaError_t asked = cudaGetDeviceProperties(&properties, device);
    if (asked != cudaSuccess) {
      return absl::InternalError(
          absl::StrCat("asking what device ", device, " is: ", cudaGetErrorName(asked)));
    }
    // Not the default stream, which others of this process wait for.
    const c10::cuda::CUDAStream stream =
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index);
    c10::cuda::setCurrentCUDAStream(stream);
    return std::make_unique<CudaTorchDevice>(index, properties.totalGlobalMem, stream);
  }
};

}  // namespace
}  // namespace siphon

// What dlsym finds. Null: the caller was compiled against other headers.
extern "C" __attribute__((visibility("default"))) const siphon::TorchCudaModule*
siphon_torch_cuda_module(int interface) {
  static const siphon::ModuleOfThisObject module;
  return interface == siphon::kTorchCudaInterface ? &module : nullptr;
}
