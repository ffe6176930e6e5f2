// Devices, memory and errors, as the CUDA runtime has them.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "tests/support/fake_cuda/board.h"
#include "tests/support/fake_cuda/memory.h"
#include "tests/support/fake_cuda/state.h"
#include "tests/support/fake_cuda/streams.h"

using siphon::fake_cuda::AddressBook;
using siphon::fake_cuda::AreTogether;
using siphon::fake_cuda::Board;
using siphon::fake_cuda::CurrentDevice;
using siphon::fake_cuda::Finish;
using siphon::fake_cuda::IsDevice;
using siphon::fake_cuda::Place;
using siphon::fake_cuda::TheState;

namespace {

// Of an H200.
constexpr int kComputeMajor = 9;
constexpr int kCopyEngines = 3;

struct ErrorText {
  const char* name;
  const char* text;
};

ErrorText TextOf(cudaError_t error) {
  static const auto* const texts = new std::map<cudaError_t, ErrorText>{
      {cudaSuccess, {"cudaSuccess", "no error"}},
      {cudaErrorInvalidValue, {"cudaErrorInvalidValue", "invalid argument"}},
      {cudaErrorMemoryAllocation, {"cudaErrorMemoryAllocation", "out of memory"}},
      {cudaErrorInsufficientDriver,
       {"cudaErrorInsufficientDriver",
        "CUDA driver version is insufficient for CUDA runtime "
        "version"}},
      {cudaErrorInvalidDeviceFunction,
       {"cudaErrorInvalidDeviceFunction", "invalid device function"}},
      {cudaErrorNoDevice, {"cudaErrorNoDevice", "no CUDA-capable device is detected"}},
      {cudaErrorInvalidDevice, {"cudaErrorInvalidDevice", "invalid device ordinal"}},
      {cudaErrorDeviceUninitialized, {"cudaErrorDeviceUninitialized", "invalid device context"}},
      {cudaErrorECCUncorrectable,
       {"cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"}},
      {cudaErrorNvlinkUncorrectable,
       {"cudaErrorNvlinkUncorrectable",
        "uncorrectable NVLink error detected during the execution"}},
      {cudaErrorInvalidResourceHandle,
       {"cudaErrorInvalidResourceHandle", "invalid resource handle"}},
      {cudaErrorNotReady, {"cudaErrorNotReady", "device not ready"}},
      {cudaErrorIllegalAddress,
       {"cudaErrorIllegalAddress", "an illegal memory access was encountered"}},
      {cudaErrorPeerAccessUnsupported,
       {"cudaErrorPeerAccessUnsupported",
        "peer access is not supported between these two devices"}},
      {cudaErrorPeerAccessAlreadyEnabled,
       {"cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"}},
      {cudaErrorHostMemoryAlreadyRegistered,
       {"cudaErrorHostMemoryAlreadyRegistered",
        "part or all of the requested memory range is "
        "already mapped"}},
      {cudaErrorHostMemoryNotRegistered,
       {"cudaErrorHostMemoryNotRegistered",
        "pointer does not correspond to a registered memory "
        "region"}},
  };
  const auto found = texts->find(error);
  return found == texts->end() ? ErrorText{"unrecognized error code", "unrecognized error code"}
                               : found->second;
}

struct Peers {
  std::mutex mutex;
  std::set<std::pair<int, int>> enabled;
};

Peers& ThePeers() {
  static auto* const peers = new Peers();
  return *peers;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) { return TextOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return TextOf(error).text; }
cudaError_t cudaGetLastError() { return siphon::fake_cuda::TakeLastError(); }
cudaError_t cudaPeekAtLastError() { return siphon::fake_cuda::LastError(); }

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = TheState().devices < 0 ? 0 : CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  FAKE_CUDA_ENTER();
  *count = static_cast<int>(TheState().devices);
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  FAKE_CUDA_ENTER();
  if (!IsDevice(device)) return Finish(cudaErrorInvalidDevice);
  CurrentDevice() = device;
  TheState().contexts |= int64_t{1} << device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  FAKE_CUDA_ENTER();
  *device = CurrentDevice();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  FAKE_CUDA_ENTER();
  if (!IsDevice(device)) return Finish(cudaErrorInvalidDevice);
  *properties = cudaDeviceProp();
  const char* const name = std::getenv("SIPHON_FAKE_CUDA_NAME");
  std::snprintf(properties->name, sizeof(properties->name), "%s",
                name == nullptr ? "Siphon fake GPU" : name);
  properties->uuid.bytes[0] = static_cast<char>(0xFA);
  properties->uuid.bytes[sizeof(properties->uuid.bytes) - 1] = static_cast<char>(device);
  properties->major = kComputeMajor;
  properties->asyncEngineCount = kCopyEngines;
  properties->totalGlobalMem = static_cast<size_t>(TheState().memory);
  properties->unifiedAddressing = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  FAKE_CUDA_ENTER();
  if (!IsDevice(device)) return Finish(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrAsyncEngineCount:
      *value = kCopyEngines;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = kComputeMajor;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrIpcEventSupport:
      *value = 1;
      return cudaSuccess;
    default:
      return Finish(cudaErrorInvalidValue);
  }
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  FAKE_CUDA_ENTER();
  if (!IsDevice(device)) return Finish(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", 0x10 + device);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  FAKE_CUDA_ENTER();
  if (!IsDevice(device) || !IsDevice(peer)) return Finish(cudaErrorInvalidDevice);
  *can = device != peer && AreTogether(device, peer) ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  FAKE_CUDA_ENTER();
  if (flags != 0) return Finish(cudaErrorInvalidValue);
  if (!IsDevice(peer) || peer == CurrentDevice()) return Finish(cudaErrorInvalidDevice);
  if (!AreTogether(CurrentDevice(), peer)) return Finish(cudaErrorPeerAccessUnsupported);
  Peers& peers = ThePeers();
  const std::lock_guard lock(peers.mutex);
  const bool is_new = peers.enabled.emplace(CurrentDevice(), peer).second;
  return Finish(is_new ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  FAKE_CUDA_ENTER();
  siphon::fake_cuda::WaitForStreamsOf(CurrentDevice());
  return Finish(AddressBook::The().Take(CurrentDevice(), bytes, address));
}
cudaError_t cudaFree(void* address) {
  FAKE_CUDA_ENTER();
  const Place place = AddressBook::The().Find(address, 1);
  siphon::fake_cuda::WaitForStreamsOf(place.kind == Place::Kind::kDevice ? place.device
                                                                         : CurrentDevice());
  return Finish(AddressBook::The().Free(address));
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  FAKE_CUDA_ENTER();
  *free = Board::The().Free(CurrentDevice());
  *total = static_cast<size_t>(TheState().memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned) {
  FAKE_CUDA_ENTER();
  return Finish(AddressBook::The().Lock(address, bytes));
}
cudaError_t cudaHostUnregister(void* address) {
  FAKE_CUDA_ENTER();
  return Finish(AddressBook::The().Unlock(address));
}
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  FAKE_CUDA_ENTER();
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return Finish(AddressBook::The().Lock(*address, bytes));
}
cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}
cudaError_t cudaFreeHost(void* address) {
  FAKE_CUDA_ENTER();
  for (int device = 0; IsDevice(device); ++device) siphon::fake_cuda::WaitForStreamsOf(device);
  const cudaError_t error = AddressBook::The().Unlock(address);
  if (error == cudaSuccess) std::free(address);
  return Finish(error);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  FAKE_CUDA_ENTER();
  return Finish(AddressBook::The().Export(handle, address));
}
cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned flags) {
  FAKE_CUDA_ENTER();
  if (flags != cudaIpcMemLazyEnablePeerAccess) return Finish(cudaErrorInvalidValue);
  if (++TheState().opens == TheState().fail_open) return Finish(cudaErrorPeerAccessUnsupported);
  return Finish(AddressBook::The().Open(handle, address));
}
cudaError_t cudaIpcCloseMemHandle(void* address) {
  FAKE_CUDA_ENTER();
  for (int device = 0; IsDevice(device); ++device) siphon::fake_cuda::WaitForStreamsOf(device);
  return Finish(AddressBook::The().Close(address));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  FAKE_CUDA_ENTER();
  const Place place = AddressBook::The().Find(address, 1);
  *attributes = cudaPointerAttributes();
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = -1;
  if (place.error != cudaSuccess || place.kind == Place::Kind::kPageable) return cudaSuccess;
  const bool on_device = place.kind == Place::Kind::kDevice;
  attributes->type = on_device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attributes->device = on_device ? place.device : CurrentDevice();
  attributes->devicePointer = const_cast<void*>(address);
  attributes->hostPointer = on_device ? nullptr : const_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  FAKE_CUDA_ENTER();
  siphon::fake_cuda::Stream* const found = siphon::fake_cuda::FindStream(stream);
  if (found == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  found->Add([=] {
    const Place place = AddressBook::The().Find(address, bytes);
    if (place.error != cudaSuccess) {
      TheState().sticky = cudaErrorIllegalAddress;
    } else {
      std::memset(place.real, value, bytes);
    }
  });
  return cudaSuccess;
}
cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  const cudaError_t started = cudaMemsetAsync(address, value, bytes, nullptr);
  return started == cudaSuccess ? cudaStreamSynchronize(nullptr) : started;
}

}  // extern "C"
