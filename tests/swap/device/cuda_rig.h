#ifndef SIPHON_TESTS_SWAP_DEVICE_CUDA_RIG_H_
#define SIPHON_TESTS_SWAP_DEVICE_CUDA_RIG_H_

#include <cuda_runtime_api.h>

#include "swap/device/cuda_module.h"

namespace siphon {

// The module as the program loads it. Ends the process where that fails.
const CudaModule& TheCudaModule();

// Ends the process, naming the call, when a test's own call of the runtime fails.
void CheckCuda(cudaError_t error, const char* doing);

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_DEVICE_CUDA_RIG_H_
