#ifndef SIPHON_TESTS_PIPELINE_TRANSPORT_NCCL_RIG_H_
#define SIPHON_TESTS_PIPELINE_TRANSPORT_NCCL_RIG_H_

#include <memory>
#include <vector>

#include "pipeline/transport/nccl_module.h"
#include "pipeline/transport/transport.h"
#include "swap/device/cuda_module.h"

// Transports over NCCL for tests, from the module as the program loads it: on the fake runtime and
// the fake NCCL (LD_PRELOAD, as ctest does it), or, with SIPHON_GPU=1, on the real ones.

namespace siphon {

// Both end the process where they fail.
const CudaModule& TheCudaModule();
const NcclModule& TheNcclModule();

// Memory of a device, cut into pieces; nothing is given back.
class DeviceMemory {
 public:
  DeviceMemory(int device, Bytes bytes);
  int device() const { return device_; }
  // Aligned to 64 bytes. Ends the process when there is too little.
  absl::Span<std::byte> Take(size_t bytes);
  // Between it and the host.
  void Copy(void* to, const void* from, size_t bytes) const;

 private:
  const int device_;
  std::unique_ptr<ParkingArena> arena_;
  absl::Span<std::byte> left_;
};

// For tests that have their messages in the host's memory: moves those of the data lanes to and
// from the device, so that `inner` sees devices' memory only. `memory` outlives it.
std::unique_ptr<Transport> StageOnDevice(std::unique_ptr<Transport> inner, DeviceMemory* memory);

// Both data lanes of all pairs.
std::vector<Channel> DataChannels(int workers);

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TRANSPORT_NCCL_RIG_H_
