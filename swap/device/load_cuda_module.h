#ifndef SIPHON_SWAP_DEVICE_LOAD_CUDA_MODULE_H_
#define SIPHON_SWAP_DEVICE_LOAD_CUDA_MODULE_H_

#include <string>

#include "absl/status/statusor.h"
#include "swap/device/cuda_module.h"

namespace siphon {

// Where the module is for the program at `program` (/proc/self/exe): beside it, in lib/siphon of
// where it is installed, or in its build folder. Empty: this build has none.
std::string FindCudaModule(const std::string& program);

// From now on CUDA numbers devices by where they are on the bus, as NVML, nvidia-smi and NCCL do,
// unless the user has said otherwise. Before the process has other threads, and has called CUDA.
void NumberCudaDevicesByBus();

// Loads the shared object; it stays until the process ends. Errors: FailedPrecondition, in one
// line: there is none (`path` is empty), it cannot be loaded, or it is of another version.
absl::StatusOr<const CudaModule*> LoadCudaModule(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_LOAD_CUDA_MODULE_H_
