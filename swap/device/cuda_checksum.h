#ifndef SIPHON_SWAP_DEVICE_CUDA_CHECKSUM_H_
#define SIPHON_SWAP_DEVICE_CUDA_CHECKSUM_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace siphon {

// Enqueues: adds the terms of all words of `bytes` bytes at `data` to `sum`, both on the device
// (swap/checksum_word.h). `data` begins anywhere. Together with ChecksumOfSize that is
// MemoryChecksum.
cudaError_t AddChecksumTerms(const std::byte* data, size_t bytes, unsigned long long* sum,
                             cudaStream_t stream);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_CHECKSUM_H_
