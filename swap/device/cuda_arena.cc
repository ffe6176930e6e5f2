#include "swap/device/cuda_arena.h"

#include <cuda_runtime_api.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_peers.h"
#include "swap/device/cuda_status.h"

namespace siphon {
namespace {

constexpr uint64_t kArenaMagic = 0x316E657261504953u;  // "SIParen1"

// The bytes of a handle.
struct HandleBytes {
  uint64_t magic = kArenaMagic;
  uint64_t process = 0;  // drawn at random: process numbers repeat in other namespaces
  int64_t pid = 0;       // for people
  int32_t device = 0;    // of its process
  int32_t unused = 0;
  uint64_t address = 0;  // in its process
  uint64_t bytes = 0;
  cudaIpcMemHandle_t memory = {};
};

uint64_t ThisProcess() {
  static const uint64_t drawn = [] {
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
      number = static_cast<uint64_t>(getpid());
    }
    return number;
  }();
  return drawn;
}

class OwnedArena final : public ParkingArena {
 public:
  OwnedArena(int device, absl::Span<std::byte> memory) : device_(device), memory_(memory) {}
  ~OwnedArena() override {
    const CudaDeviceScope scope(device_);
    static_cast<void>(cudaFree(memory_.data()));
    static_cast<void>(cudaGetLastError());
  }
  absl::Status Export() {
    HandleBytes bytes{.process = ThisProcess(),
                      .pid = getpid(),
                      .device = device_,
                      .address = reinterpret_cast<uintptr_t>(memory_.data()),
                      .bytes = memory_.size()};
    SIPHON_CUDA_RETURN_IF_ERROR(cudaIpcGetMemHandle(&bytes.memory, memory_.data()),
                                absl::StrCat("exporting ", memory_.size(), " bytes of device ",
                                             device_, " to other processes"));
    handle_.assign(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    return absl::OkStatus();
  }
  absl::Span<std::byte> memory() const override { return memory_; }
  const std::string& handle() const override { return handle_; }

 private:
  const int device_;
  const absl::Span<std::byte> memory_;
  std::string handle_;
};

class MappedArena final : public OpenedArena {
 public:
  enum class At { kRawPointer, kMapping };
  MappedArena(int device, absl::Span<std::byte> memory, At at)
      : device_(device), memory_(memory), at_(at) {}
  ~MappedArena() override {
    if (at_ == At::kRawPointer) return;
    const CudaDeviceScope scope(device_);
    static_cast<void>(cudaIpcCloseMemHandle(memory_.data()));
    static_cast<void>(cudaGetLastError());
  }
  absl::Span<std::byte> memory() const override { return memory_; }

 private:
  const int device_;
  const absl::Span<std::byte> memory_;
  const At at_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParkingArena>> MakeCudaArena(int device, Bytes bytes) {
  SIPHON_CHECK(bytes > Bytes(0), "an arena has bytes");
  const CudaDeviceScope scope(device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  const int64_t block = kCudaArenaBlock.value;
  const size_t size = static_cast<size_t>((bytes.value + block - 1) / block * block);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, size);
  if (error != cudaSuccess) {
    size_t free = 0;
    size_t total = 0;
    const bool known = cudaMemGetInfo(&free, &total) == cudaSuccess;
    return CudaStatus(
        error, absl::StrCat("taking ", size, " bytes of device ", device, " to lend",
                            known ? absl::StrCat(" (", free, " of ", total, " are free)") : ""));
  }
  auto arena =
      std::make_unique<OwnedArena>(device, absl::MakeSpan(static_cast<std::byte*>(memory), size));
  SIPHON_RETURN_IF_ERROR(arena->Export());
  return arena;
}

absl::StatusOr<std::unique_ptr<OpenedArena>> OpenCudaArena(int device, absl::string_view handle) {
  HandleBytes bytes;
  if (handle.size() != sizeof(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("a handle of lent memory has ", sizeof(bytes),
                                                   " bytes, this one ", handle.size()));
  }
  std::memcpy(&bytes, handle.data(), sizeof(bytes));
  if (bytes.magic != kArenaMagic) {
    return absl::InvalidArgumentError("these bytes are no handle of lent memory");
  }
  const CudaDeviceScope scope(device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  if (bytes.process == ThisProcess()) {
    const absl::Status allowed = AllowCudaPeer(device, bytes.device);
    if (!allowed.ok()) return absl::UnavailableError(allowed.message());
    return std::make_unique<MappedArena>(
        device, absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.address), bytes.bytes),
        MappedArena::At::kRawPointer);
  }
  void* memory = nullptr;
  const absl::Status opened =
      CudaStatus(cudaIpcOpenMemHandle(&memory, bytes.memory, cudaIpcMemLazyEnablePeerAccess),
                 absl::StrCat("opening ", bytes.bytes, " bytes that process ", bytes.pid,
                              " lends on its device ", bytes.device));
  if (!opened.ok()) return absl::UnavailableError(opened.message());
  return std::make_unique<MappedArena>(device,
                                       absl::MakeSpan(static_cast<std::byte*>(memory), bytes.bytes),
                                       MappedArena::At::kMapping);
}

}  // namespace siphon
