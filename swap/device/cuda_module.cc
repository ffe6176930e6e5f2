#include "swap/device/cuda_module.h"

#include <cuda_runtime_api.h>

#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_arena.h"
#include "swap/device/cuda_backend.h"
#include "swap/device/cuda_copy_trial.h"
#include "swap/device/cuda_health.h"
#include "swap/device/cuda_host_pool.h"
#include "swap/device/cuda_nvml.h"
#include "swap/device/cuda_peers.h"
#include "swap/device/cuda_ranges.h"
#include "swap/device/cuda_status.h"

namespace siphon {
namespace {

// At least one.
absl::StatusOr<int> CountDevices() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  SIPHON_RETURN_IF_ERROR(NoDeviceStatus(error));
  SIPHON_CUDA_RETURN_IF_ERROR(error, "counting CUDA devices");
  if (devices == 0) return NoDeviceStatus(cudaErrorNoDevice);
  return devices;
}

// Linux writes -1 where it does not know.
std::optional<int> NodeOfBus(const std::string& bus_id) {
  std::ifstream file(absl::StrCat("/sys/bus/pci/devices/", CanonicalBusId(bus_id), "/numa_node"));
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

// "GPU-5eb2b8ca-...", as the driver's programs write it.
std::string UuidText(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (size_t at = 0; at < sizeof(uuid.bytes); ++at) {
    if (at == 0 || at == 4 || at == 6 || at == 8 || at == 10) text += "-";
    absl::StrAppend(&text, absl::Hex(static_cast<unsigned char>(uuid.bytes[at]), absl::kZeroPad2));
  }
  return text;
}

// Makes no context there: a device that others have filled, or have to themselves, is none that
// this job needs.
absl::StatusOr<CudaDeviceInfo> Describe(int device) {
  const std::string doing = absl::StrCat("asking what device ", device, " is");
  cudaDeviceProp properties;
  SIPHON_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, device), doing);
  CudaDeviceInfo info{.device = device,
                      .name = properties.name,
                      .compute_major = properties.major,
                      .compute_minor = properties.minor,
                      .copy_engines = properties.asyncEngineCount,
                      .memory = Bytes(static_cast<int64_t>(properties.totalGlobalMem))};
  char bus_id[32] = {};
  SIPHON_CUDA_RETURN_IF_ERROR(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), device), doing);
  info.bus_id = bus_id;
  info.uuid = UuidText(properties.uuid);
  info.numa_node = NodeOfBus(info.bus_id);
  return info;
}

class ModuleOfThisObject final : public CudaModule {
 public:
  absl::StatusOr<std::vector<CudaDeviceInfo>> Devices() const override {
    SIPHON_ASSIGN_OR_RETURN(const int count, CountDevices());
    std::vector<CudaDeviceInfo> devices;
    for (int device = 0; device < count; ++device) {
      SIPHON_ASSIGN_OR_RETURN(CudaDeviceInfo info, Describe(device));
      devices.push_back(std::move(info));
    }
    return devices;
  }
  absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackend(
      const CudaBackendOptions& options) const override {
    SIPHON_RETURN_IF_ERROR(CountDevices().status());
    return CudaBackend::Make(options);
  }
  absl::StatusOr<std::unique_ptr<ParkingArena>> MakeArena(int device, Bytes bytes) const override {
    SIPHON_RETURN_IF_ERROR(CountDevices().status());
    return MakeCudaArena(device, bytes);
  }
  absl::StatusOr<std::unique_ptr<OpenedArena>> OpenArena(int device,
                                                         absl::string_view handle) const override {
    SIPHON_RETURN_IF_ERROR(CountDevices().status());
    return OpenCudaArena(device, handle);
  }
  absl::StatusOr<std::unique_ptr<PinnedPool>> MakePinnedPool(
      const PinnedPoolOptions& options) const override {
    SIPHON_RETURN_IF_ERROR(CountDevices().status());
    return MakeCudaHostPool(options);
  }
  absl::Status CopyNow(int device, void* to, const void* from, size_t bytes) const override {
    const std::string doing = absl::StrCat("copying ", bytes, " bytes of device ", device);
    int current = 0;
    SIPHON_CUDA_RETURN_IF_ERROR(cudaGetDevice(&current), doing);
    if (current != device) SIPHON_CUDA_RETURN_IF_ERROR(cudaSetDevice(device), doing);
    SIPHON_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread), doing);
    return CudaStatus(cudaStreamSynchronize(cudaStreamPerThread), doing);
  }
  absl::Status Health(int device) const override { return CudaHealth(device); }
  std::optional<int> NumaNode(int device) const override {
    char bus_id[32] = {};
    if (cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), device) == cudaSuccess) {
      return NodeOfBus(bus_id);
    }
    static_cast<void>(cudaGetLastError());
    return std::nullopt;
  }
  absl::StatusOr<bool> Reaches(int device, int peer) const override {
    return CudaReaches(device, peer);
  }
  const ProfilerRanges* Ranges() const override { return RangesOfProfiler(); }
  absl::StatusOr<std::vector<CopyFigure>> RunTrial(const CopyTrial& trial) const override {
    SIPHON_RETURN_IF_ERROR(CountDevices().status());
    return RunCudaCopyTrial(trial);
  }
};

}  // namespace
}  // namespace siphon

// What dlsym finds. Null: the caller was compiled against other headers.
extern "C" __attribute__((visibility("default"))) const siphon::CudaModule* siphon_cuda_module(
    int interface) {
  static const siphon::ModuleOfThisObject module;
  return interface == siphon::kCudaModuleInterface ? &module : nullptr;
}
