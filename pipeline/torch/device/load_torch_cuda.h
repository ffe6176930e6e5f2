#ifndef SIPHON_PIPELINE_TORCH_LOAD_TORCH_CUDA_H_
#define SIPHON_PIPELINE_TORCH_LOAD_TORCH_CUDA_H_

#include <string>

#include "absl/status/statusor.h"
#include "pipeline/torch/device/torch_device.h"

namespace siphon {

// Where the module is that belongs to the CUDA module at `cuda_module` (FindCudaModule): beside it,
// or in its build folder. Empty: there is none.
std::string FindTorchCudaModule(const std::string& cuda_module);

// Loads the shared object; it stays until the process ends. Errors: FailedPrecondition, in one line
// that says what is left: there is none (`path` is empty), it or one of LibTorch's libraries cannot
// be loaded, or it is of another version.
absl::StatusOr<const TorchCudaModule*> LoadTorchCuda(const std::string& path);

// "no CUDA: ...; workers compute on the CPU here (pipeline.backend: cpu)".
absl::Status NoTorchCuda(absl::string_view because);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_LOAD_TORCH_CUDA_H_
