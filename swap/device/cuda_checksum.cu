#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "swap/checksum_word.h"
#include "swap/device/cuda_checksum.h"

namespace siphon {
namespace {

constexpr int kThreads = 256;
constexpr size_t kMostBlocks =
    1024;  // more than fit at once on any device; each goes on in strides

// The word at `place` of bytes that begin anywhere; behind the end there are zeros.
__device__ uint64_t WordAt(const unsigned char* data, uint64_t bytes, uint64_t place) {
  const uint64_t begin = place * sizeof(uint64_t);
  const bool aligned = (reinterpret_cast<uintptr_t>(data) & (sizeof(uint64_t) - 1)) == 0;
  if (aligned && begin + sizeof(uint64_t) <= bytes) {
    return reinterpret_cast<const uint64_t*>(data)[place];
  }
  uint64_t word = 0;
  for (uint64_t byte = 0; byte < sizeof(uint64_t) && begin + byte < bytes; ++byte) {
    word |= static_cast<uint64_t>(data[begin + byte]) << (8 * byte);
  }
  return word;
}

}  // namespace

// Grid and block: any, of one dimension. Not in the unnamed namespace: the fake runtime of the
// tests knows the kernel by its name.
__global__ void AddChecksumTermsKernel(const unsigned char* data, uint64_t bytes,
                                       unsigned long long* sum) {
  const uint64_t words = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  unsigned long long own = 0;
  for (uint64_t place = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; place < words;
       place += stride) {
    own += ChecksumTerm(WordAt(data, bytes, place), place);
  }
  for (int lanes = warpSize / 2; lanes > 0; lanes /= 2) {
    own += __shfl_down_sync(0xFFFFFFFFu, own, lanes);
  }
  if (threadIdx.x % warpSize == 0 && own != 0) atomicAdd(sum, own);
}

cudaError_t AddChecksumTerms(const std::byte* data, size_t bytes, unsigned long long* sum,
                             cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const size_t words = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  const size_t blocks = std::min((words + kThreads - 1) / kThreads, kMostBlocks);
  AddChecksumTermsKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      reinterpret_cast<const unsigned char*>(data), bytes, sum);
  return cudaGetLastError();
}

}  // namespace siphon
