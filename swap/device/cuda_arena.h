#ifndef SIPHON_SWAP_DEVICE_CUDA_ARENA_H_
#define SIPHON_SWAP_DEVICE_CUDA_ARENA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/units.h"
#include "swap/device/cuda_module.h"

namespace siphon {

// As CudaModule::MakeArena: by cudaMalloc, outside any allocator.
absl::StatusOr<std::unique_ptr<ParkingArena>> MakeCudaArena(int device, Bytes bytes);

// As CudaModule::OpenArena. A process cannot open its own handles: within one the memory itself is
// used, and where the devices differ their peer access is switched on.
absl::StatusOr<std::unique_ptr<OpenedArena>> OpenCudaArena(int device, absl::string_view handle);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_ARENA_H_
