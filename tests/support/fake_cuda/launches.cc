// Kernels: what nvcc's stubs register and launch. Device code cannot run here; a kernel that tests
// need stands below with the same result in C++, word by word as its threads would find it.

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "swap/memory_checksum.h"
#include "tests/support/fake_cuda/memory.h"
#include "tests/support/fake_cuda/state.h"
#include "tests/support/fake_cuda/streams.h"

namespace siphon::fake_cuda {
namespace {

struct LaunchShape {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
};

thread_local std::vector<LaunchShape> shapes;  // between <<<>>> and the stub

// [address of the host's stub]: the kernel's name in its device code.
struct Stubs {
  std::mutex mutex;
  std::map<const void*, std::string> names;
};

Stubs& TheStubs() {
  static auto* const stubs = new Stubs();
  return *stubs;
}

template <typename T>
T Argument(void** arguments, int place) {
  T value;
  std::memcpy(&value, arguments[place], sizeof(value));
  return value;
}

// A device's bytes; null, and an error that sticks, for what is none.
template <typename T>
T* OnDevice(const T* address, size_t bytes) {
  const Place place = AddressBook::The().Find(address, bytes);
  if (place.error == cudaSuccess && place.kind != Place::Kind::kPageable) {
    return reinterpret_cast<T*>(place.real);
  }
  TheState().sticky = cudaErrorIllegalAddress;
  return nullptr;
}

// swap/device/cuda_checksum.cu
std::function<void()> AddChecksumTermsKernel(void** arguments) {
  const auto* const data = Argument<const unsigned char*>(arguments, 0);
  const auto bytes = Argument<uint64_t>(arguments, 1);
  auto* const sum = Argument<unsigned long long*>(arguments, 2);
  return [=] {
    const auto* const own_data = OnDevice(data, bytes);
    auto* const own_sum = OnDevice(sum, sizeof(*sum));
    if (own_data == nullptr || own_sum == nullptr) return;
    *own_sum += MemoryChecksum({reinterpret_cast<const std::byte*>(own_data), bytes}) -
                ChecksumOfSize(bytes);
  };
}

using MakeKernel = std::function<void()> (*)(void** arguments);

MakeKernel FindKernel(const void* stub) {
  Stubs& stubs = TheStubs();
  const std::lock_guard lock(stubs.mutex);
  const auto found = stubs.names.find(stub);
  if (found == stubs.names.end()) return nullptr;
  if (found->second.find("AddChecksumTermsKernel") != std::string::npos) {
    return AddChecksumTermsKernel;
  }
  return nullptr;
}

cudaError_t Launch(const void* stub, void** arguments, cudaStream_t stream) {
  const MakeKernel make = FindKernel(stub);
  if (make == nullptr) return cudaErrorInvalidDeviceFunction;
  Stream* const found = FindStream(stream);
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  ++TheState().kernels;
  // The arguments are the caller's until this returns.
  found->Add([kernel = make(arguments)] {
    if (TheState().sticky == cudaSuccess) kernel();
  });
  return cudaSuccess;
}

}  // namespace
}  // namespace siphon::fake_cuda

using siphon::fake_cuda::Finish;
using siphon::fake_cuda::Launch;
using siphon::fake_cuda::LaunchShape;
using siphon::fake_cuda::shapes;
using siphon::fake_cuda::TheStubs;

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* fat_binary = nullptr;
  return &fat_binary;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  auto& stubs = TheStubs();
  const std::lock_guard lock(stubs.mutex);
  stubs.names[stub] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  shapes.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (shapes.empty()) return Finish(cudaErrorMissingConfiguration);
  const LaunchShape shape = shapes.back();
  shapes.pop_back();
  *grid = shape.grid;
  *block = shape.block;
  *shared = shape.shared;
  *static_cast<cudaStream_t*>(stream) = shape.stream;
  return cudaSuccess;
}

// CUDA 12.
cudaError_t cudaLaunchKernel(const void* stub, dim3, dim3, void** arguments, size_t,
                             cudaStream_t stream) {
  FAKE_CUDA_ENTER();
  return Finish(Launch(stub, arguments, stream));
}

#if CUDART_VERSION >= 12010  // which has the type
// CUDA 13.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void** arguments, size_t,
                               cudaStream_t stream) {
  FAKE_CUDA_ENTER();
  return Finish(Launch(kernel, arguments, stream));
}
#endif

}  // extern "C"
