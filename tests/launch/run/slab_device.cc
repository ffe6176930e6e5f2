#include "tests/launch/run/slab_device.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pipeline/transport/load_nccl_module.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"
#include "tests/pipeline/torch/other_torch_device.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/support/fake_cuda/other_fakes.h"

namespace siphon {
namespace {

// Memory of the fake device in one piece, cut up for tensors.
class Slab {
 public:
  static Slab& The() {
    static Slab slab;
    return slab;
  }
  void Open(const CudaModule& cuda, Bytes bytes) {
    auto made = cuda.MakeArena(/*device=*/0, bytes);
    SIPHON_CHECK(made.ok(), made.status().message());
    arena_ = made->release();  // tensors are there to the end
    const auto find = reinterpret_cast<decltype(&siphon_fake_cuda_find)>(
        dlsym(RTLD_DEFAULT, "siphon_fake_cuda_find"));
    siphon_fake_cuda_place place;
    SIPHON_CHECK(find != nullptr && find(arena_->memory().data(), 1, &place) == 0,
                 "the fake finds its memory");
    real_ = place.real;
    most_ = static_cast<size_t>(bytes.value);
  }
  void* Take(size_t bytes) {
    const size_t rounded = (bytes + 511) / 512 * 512;
    const std::lock_guard lock(mutex_);
    std::vector<size_t>& free = free_[rounded];
    size_t offset = cut_;
    if (!free.empty()) {
      offset = free.back();
      free.pop_back();
    } else {
      if (cut_ + rounded > most_) {
        short_ = {.asked = Bytes(static_cast<int64_t>(rounded)),
                  .held = Bytes(static_cast<int64_t>(cut_)),
                  .limit = Bytes(int64_t{1} << 40)};
        TORCH_CHECK_WITH(OutOfMemoryError, false, "the slab is used up");
      }
      cut_ += rounded;
    }
    taken_[offset] = rounded;
    return arena_->memory().data() + offset;
  }
  void Give(void* address) {
    const std::lock_guard lock(mutex_);
    const auto taken = taken_.find(OffsetOf(address));
    SIPHON_CHECK(taken != taken_.end(), "what is given back was taken");
    free_[taken->second].push_back(taken->first);
    taken_.erase(taken);
  }
  void* Reach(void* address) { return real_ + OffsetOf(address); }
  std::optional<DeviceShortage> shortage() {
    const std::lock_guard lock(mutex_);
    return short_;
  }

 private:
  size_t OffsetOf(void* address) const {
    return static_cast<size_t>(static_cast<std::byte*>(address) - arena_->memory().data());
  }
  std::mutex mutex_;
  ParkingArena* arena_ = nullptr;
  char* real_ = nullptr;
  size_t most_ = 0;
  size_t cut_ = 0;
  std::map<size_t, std::vector<size_t>> free_;  // offsets, by size
  std::map<size_t, size_t> taken_;              // offset -> size
  std::optional<DeviceShortage> short_;
};

class SlabDevice final : public OtherTorchDevice {
 public:
  std::optional<DeviceShortage> shortage() const override { return Slab::The().shortage(); }
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

// Their copies take a time that is worked out; small ones do.
absl::StatusOr<ProbeSources> FakeSources(const std::string& cuda_module) {
  SIPHON_ASSIGN_OR_RETURN(ProbeSources sources, ProbeSourcesWith(cuda_module));
  sources.sizes.bytes = Bytes(1 << 20);
  return sources;
}

absl::StatusOr<OpenedDevice> OpenSlab(const std::string& cuda_module, Bytes slab) {
  OpenedDevice opened;
  SIPHON_ASSIGN_OR_RETURN(opened.worker.cuda, LoadCudaModule(cuda_module));
  SIPHON_ASSIGN_OR_RETURN(opened.nccl, LoadNcclModule(cuda_module));
  Slab::The().Open(*opened.worker.cuda, slab);
  testing::UseOtherMemory({[](size_t size) { return Slab::The().Take(size); },
                           [](void* address) { Slab::The().Give(address); },
                           [](void* address) { return Slab::The().Reach(address); }});
  opened.torch = std::make_unique<SlabDevice>();
  opened.worker.torch = opened.torch.get();
  opened.worker.index_of = [](DeviceId) { return 0; };
  return opened;
}

}  // namespace

JobDevices SlabDevices(const std::string& cuda_module, Bytes slab) {
  SIPHON_CHECK(FakeCuda::IsThere(), "LD_PRELOAD the fake libcudart");
  return {.why_none = [] { return std::string(); },
          .machine = [cuda_module]() -> const CudaMachine& {
            static const CudaMachine machine = FakeMachine(cuda_module);
            return machine;
          },
          .open = [cuda_module, slab](const PreparedJob&,
                                      WorkerId) { return OpenSlab(cuda_module, slab); },
          .probe = [cuda_module] { return FakeSources(cuda_module); }};
}

}  // namespace siphon
