#ifndef SIPHON_TESTS_GPU_LARGE_COPIES_H_
#define SIPHON_TESTS_GPU_LARGE_COPIES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "swap/device/load_cuda_module.h"
#include "tests/gpu/fact_table.h"

namespace siphon {

// Large memory of the host and of device 0, and the ways between them: by one call, and by the CUDA
// backend in its chunks. Used by one thread.
class LargeCopies {
 public:
  // Prints what locking the host's memory takes.
  LargeCopies(const CudaModule& module, size_t bytes, FactTable& table);
  ~LargeCopies();
  LargeCopies(const LargeCopies&) = delete;
  LargeCopies& operator=(const LargeCopies&) = delete;

  // Of large copies; what went to the device and back is compared.
  void PrintRates();
  // How long 64 KiB take: alone, behind one large call, beside the backend with both lanes busy.
  void PrintSmallBesideLarge();
  // With chunks of other sizes, more or fewer of them at a time, and several streams: the rates of
  // one lane and of both, and how long 64 KiB take beside both: in, out, and within the device.
  void PrintWays();

 private:
  struct SmallWay {
    const char* name;
    void* to;
    const void* from;
    bool to_host;
  };
  std::vector<SmallWay> SmallWays();
  // How long 64 KiB take, a millisecond after whatever is to be in their way has begun.
  double Small(const SmallWay& way, cudaStream_t stream);
  double Rate(const std::function<void()>& copy) const;
  void ByCall(int stream, void* to, const void* from);
  void ByBackend(CopyLane lane, void* to, const void* from);
  CopyEvent Start(CopyLane lane, void* to, const void* from);
  // Both lanes are busy while `run` runs.
  double BesideBothLanes(const std::function<double()>& run);

  const CudaModule& module_;
  FactTable& table_;
  const size_t bytes_;
  std::unique_ptr<PinnedPool> pool_;
  absl::Span<std::byte> host_[2];
  absl::Span<std::byte> small_host_;
  void* device_[2] = {};
  void* small_device_[2] = {};
  cudaStream_t streams_[2] = {};
  std::unique_ptr<DeviceBackend> backend_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_GPU_LARGE_COPIES_H_
