#include "swap/device/cuda_tensor_checksums.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/checksum_word.h"
#include "swap/device/cuda_checksum.h"
#include "swap/device/cuda_status.h"
#include "swap/memory_checksum.h"

namespace siphon {
namespace {

constexpr size_t kSumsBytes = CudaTensorChecksums::kTogether * sizeof(unsigned long long);

// Memory of the host that nobody has registered is known as such. After an error of the device the
// answer is that error: what it has must not be read as the host's then.
absl::StatusOr<bool> OnDevice(const void* data, const std::string& doing) {
  cudaPointerAttributes attributes;
  SIPHON_CUDA_RETURN_IF_ERROR(cudaPointerGetAttributes(&attributes, data), doing);
  return attributes.type == cudaMemoryTypeDevice;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaTensorChecksums>> CudaTensorChecksums::Make(int device) {
  const CudaDeviceScope scope(device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  std::unique_ptr<CudaTensorChecksums> made(new CudaTensorChecksums(device));
  SIPHON_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&made->stream_, cudaStreamNonBlocking),
                              "making a stream for checksums");
  SIPHON_CUDA_RETURN_IF_ERROR(cudaMalloc(reinterpret_cast<void**>(&made->sums_), kSumsBytes),
                              "taking memory for checksums");
  SIPHON_CUDA_RETURN_IF_ERROR(
      cudaHostAlloc(reinterpret_cast<void**>(&made->back_), kSumsBytes, cudaHostAllocDefault),
      "taking locked memory for checksums");
  return made;
}

CudaTensorChecksums::~CudaTensorChecksums() {
  if (back_ != nullptr) static_cast<void>(cudaFreeHost(back_));
  if (sums_ != nullptr) static_cast<void>(cudaFree(sums_));
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  static_cast<void>(cudaGetLastError());
}

absl::StatusOr<std::vector<uint64_t>> CudaTensorChecksums::Of(
    absl::Span<const absl::Span<const std::byte>> tensors) {
  const CudaDeviceScope scope(device_);
  SIPHON_RETURN_IF_ERROR(scope.status());
  std::vector<uint64_t> checksums;
  checksums.reserve(tensors.size());
  for (size_t first = 0; first < tensors.size(); first += kTogether) {
    SIPHON_RETURN_IF_ERROR(Add(tensors.subspan(first, kTogether), checksums));
  }
  return checksums;
}

absl::Status CudaTensorChecksums::Add(absl::Span<const absl::Span<const std::byte>> tensors,
                                      std::vector<uint64_t>& checksums) {
  const std::string doing =
      absl::StrCat("checksums of ", tensors.size(), " tensors on device ", device_);
  const size_t bytes = tensors.size() * sizeof(*sums_);
  SIPHON_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(sums_, 0, bytes, stream_), doing);
  size_t there = 0;
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const absl::Span<const std::byte> memory = tensors[tensor];
    bool on_device = false;
    if (!memory.empty()) {
      SIPHON_ASSIGN_OR_RETURN(on_device, OnDevice(memory.data(), doing));
    }
    if (!on_device) {
      checksums.push_back(MemoryChecksum(memory));
      continue;
    }
    ++there;
    checksums.push_back(ChecksumOfSize(memory.size()));
    SIPHON_CUDA_RETURN_IF_ERROR(
        AddChecksumTerms(memory.data(), memory.size(), sums_ + tensor, stream_), doing);
  }
  if (there == 0) return absl::OkStatus();
  SIPHON_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(back_, sums_, bytes, cudaMemcpyDeviceToHost, stream_),
                              doing);
  SIPHON_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_), doing);
  // Those of the host have added nothing here.
  const size_t first = checksums.size() - tensors.size();
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    checksums[first + tensor] += back_[tensor];
  }
  return absl::OkStatus();
}

}  // namespace siphon
