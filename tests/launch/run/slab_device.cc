#include "tests/launch/run/slab_device.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "launch/run/parking/lending.h"
#include "pipeline/transport/load_nccl_module.h"
#include "planner/status.h"
#include "planner/topology.h"
#include "swap/device/load_cuda_module.h"
#include "tests/pipeline/torch/other_torch_device.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/support/fake_cuda/other_fakes.h"

namespace siphon {
namespace {

constexpr Bytes kSlab = kCudaArenaBlock;

// The thread's current device, as LibTorch sets it for each of its threads.
void UseDevice(int device) {
  const auto use = reinterpret_cast<int (*)(int device)>(dlsym(RTLD_DEFAULT, "cudaSetDevice"));
  SIPHON_CHECK(use != nullptr && use(device) == 0, "the fake has the device");
}

// Memory of a fake device for tensors: taken from it in slabs, as LibTorch's own allocator does,
// cut up, and not given back before the process ends.
class Slabs {
 public:
  static Slabs& The() {
    static auto* const slabs = new Slabs();
    return *slabs;
  }
  void Open(const CudaModule& cuda, int device) {
    cuda_ = &cuda;
    device_ = device;
  }
  int device() const { return device_; }
  void* Take(size_t bytes) {
    const size_t rounded = (bytes + 511) / 512 * 512;
    const std::lock_guard lock(mutex_);
    std::vector<std::byte*>& free = free_[rounded];
    std::byte* address = nullptr;
    if (!free.empty()) {
      address = free.back();
      free.pop_back();
    } else {
      if (rounded > uncut_.size()) AddSlab(rounded);
      address = uncut_.data();
      uncut_.remove_prefix(rounded);
    }
    taken_[address] = rounded;
    return address;
  }
  void Give(void* address) {
    const std::lock_guard lock(mutex_);
    const auto taken = taken_.find(static_cast<std::byte*>(address));
    SIPHON_CHECK(taken != taken_.end(), "what is given back was taken");
    free_[taken->second].push_back(taken->first);
    taken_.erase(taken);
  }
  void* Reach(void* address) {
    const std::lock_guard lock(mutex_);
    const auto slab = std::prev(slabs_.upper_bound(static_cast<std::byte*>(address)));
    return slab->second.real + (static_cast<std::byte*>(address) - slab->first);
  }
  std::optional<DeviceShortage> shortage() {
    const std::lock_guard lock(mutex_);
    return short_;
  }

 private:
  struct Slab {
    std::unique_ptr<ParkingArena> arena;
    char* real = nullptr;  // where the host reaches it
  };
  static Bytes FreeOfTheDevice() {
    const auto ask = reinterpret_cast<int (*)(size_t * free, size_t * total)>(
        dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
    size_t free = 0;
    size_t total = 0;
    SIPHON_CHECK(ask != nullptr && ask(&free, &total) == 0, "the fake knows what is free");
    return Bytes(static_cast<int64_t>(free));
  }
  void AddSlab(size_t least) {
    const Bytes asked(std::max(static_cast<int64_t>(least), kSlab.value));
    UseDevice(device_);
    auto made = cuda_->MakeArena(device_, asked);
    if (!made.ok()) {
      short_ = {.asked = asked,
                .held = held_,
                .limit = Bytes(int64_t{1} << 40),
                .free = FreeOfTheDevice()};
      TORCH_CHECK_WITH(OutOfMemoryError, false, std::string(made.status().message()));
    }
    held_ += asked;
    uncut_ = (*made)->memory();
    const auto find = reinterpret_cast<decltype(&siphon_fake_cuda_find)>(
        dlsym(RTLD_DEFAULT, "siphon_fake_cuda_find"));
    siphon_fake_cuda_place place;
    SIPHON_CHECK(find != nullptr && find(uncut_.data(), 1, &place) == 0,
                 "the fake finds its memory");
    SIPHON_CHECK(place.device == device_, "a worker's memory is on its own device");
    slabs_[uncut_.data()] = {*std::move(made), place.real};
  }

  const CudaModule* cuda_ = nullptr;
  int device_ = 0;
  std::mutex mutex_;
  std::map<std::byte*, Slab> slabs_;
  Bytes held_;
  absl::Span<std::byte> uncut_;                     // of the last one
  std::map<size_t, std::vector<std::byte*>> free_;  // by size
  std::map<std::byte*, size_t> taken_;
  std::optional<DeviceShortage> short_;
};

class SlabDevice final : public OtherTorchDevice {
 public:
  ComputeDevice device() const override {
    return {ComputeDevice::Kind::kExtension, Slabs::The().device()};
  }
  std::optional<DeviceShortage> shortage() const override { return Slabs::The().shortage(); }
};

CudaMachine FakeMachine(const std::string& cuda_module) {
  CudaMachine machine;
  const auto cuda = LoadCudaModule(cuda_module);
  SIPHON_CHECK(cuda.ok(), cuda.status().message());
  const auto devices = (*cuda)->Devices();
  SIPHON_CHECK(devices.ok(), devices.status().message());
  for (const CudaDeviceInfo& device : *devices) machine.memory.push_back(device.memory);
  return machine;
}

// The visible device of the job's plan, as OpenCudaDevice has it.
absl::StatusOr<OpenedDevice> OpenSlabs(const std::string& cuda_module, const PreparedJob& prepared,
                                       WorkerId me) {
  OpenedDevice opened;
  SIPHON_ASSIGN_OR_RETURN(opened.worker.cuda, LoadCudaModule(cuda_module));
  SIPHON_ASSIGN_OR_RETURN(opened.nccl, LoadNcclModule(cuda_module));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<CudaDeviceInfo> devices, opened.worker.cuda->Devices());
  opened.worker.visible = static_cast<int>(devices.size());
  const DeviceUse use = prepared.share_gpu ? DeviceUse::kShared : DeviceUse::kOneEach;
  opened.worker.index_of = [visible = opened.worker.visible, use,
                            &topology = prepared.plan_text.topology](DeviceId device) {
    return VisibleDevice(DeviceId(IndexInServer(topology, device)), visible, use);
  };
  const int mine = opened.worker.index_of(DeviceOfWorker(prepared, me));
  UseDevice(mine);
  Slabs::The().Open(*opened.worker.cuda, mine);
  UseOtherMemory({[](size_t size) { return Slabs::The().Take(size); },
                  [](void* address) { Slabs::The().Give(address); },
                  [](void* address) { return Slabs::The().Reach(address); }, mine});
  opened.torch = std::make_unique<SlabDevice>();
  opened.worker.torch = opened.torch.get();
  opened.worker.numa_node = opened.worker.cuda->NumaNode(mine);
  return opened;
}

}  // namespace

JobDevices SlabDevices(const std::string& cuda_module) {
  SIPHON_CHECK(FakeCuda::IsThere(), "LD_PRELOAD the fake libcudart");
  return {.why_none = [] { return std::string(); },
          .machine = [cuda_module]() -> const CudaMachine& {
            static const CudaMachine machine = FakeMachine(cuda_module);
            return machine;
          },
          .open = [cuda_module](const PreparedJob& prepared,
                                WorkerId me) { return OpenSlabs(cuda_module, prepared, me); },
          .probe = [cuda_module] { return ProbeSourcesWith(cuda_module); }};
}

}  // namespace siphon
