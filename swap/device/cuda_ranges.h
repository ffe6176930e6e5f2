#ifndef SIPHON_SWAP_DEVICE_CUDA_RANGES_H_
#define SIPHON_SWAP_DEVICE_CUDA_RANGES_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "swap/device/cuda_module.h"

namespace siphon {

// NVTX, whose header finds a profiler at run time (NVTX_INJECTION64_PATH, as Nsight sets it) and
// costs nothing without. All in a domain "siphon". Thread-safety: any thread.

// Null: no profiler watches.
const ProfilerRanges* RangesOfProfiler();

// From a copy's start on its stream to when it is seen to be through; by any thread. 0: nobody
// watches.
uint64_t BeginCopyRange(const std::string& name, int64_t bytes);
void EndCopyRange(uint64_t range);
// What a profiler calls a stream.
void NameStream(cudaStream_t stream, const std::string& name);
// What it calls the thread that says so.
void NameThisThread(const std::string& name);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_RANGES_H_
