#ifndef SIPHON_SWAP_DEVICE_CUDA_TENSOR_CHECKSUMS_H_
#define SIPHON_SWAP_DEVICE_CUDA_TENSOR_CHECKSUMS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace siphon {

// Checksums of tensors where they are: by a kernel for each on a device, which come back together.
//
// Thread-safety: one thread.
class CudaTensorChecksums {
 public:
  // At most so many sums come back in one copy, of locked memory.
  static constexpr size_t kTogether = 512;

  // Waits for the device's work, as taking locked memory does: once, not in each step. Errors: of
  // the runtime.
  static absl::StatusOr<std::unique_ptr<CudaTensorChecksums>> Make(int device);
  ~CudaTensorChecksums();
  CudaTensorChecksums(const CudaTensorChecksums&) = delete;
  CudaTensorChecksums& operator=(const CudaTensorChecksums&) = delete;

  // MemoryChecksum of each, once its stream has made them. Errors: Internal, of the runtime.
  absl::StatusOr<std::vector<uint64_t>> Of(absl::Span<const absl::Span<const std::byte>> tensors);

 private:
  explicit CudaTensorChecksums(int device) : device_(device) {}
  // Of at most kTogether.
  absl::Status Add(absl::Span<const absl::Span<const std::byte>> tensors,
                   std::vector<uint64_t>& checksums);

  const int device_;
  cudaStream_t stream_ = nullptr;
  unsigned long long* sums_ = nullptr;  // on the device
  unsigned long long* back_ = nullptr;  // of the host, locked
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_TENSOR_CHECKSUMS_H_
