// One worker process of a job on devices, under a user's mpirun (device_processes_test.cc):
//
//   device_rank FOLDER STRATEGY PERCENT SLAB
//
// All of it is the program's own, but what LibTorch computes: that is on a device beside the CPU,
// whose tensors are in memory of the fake CUDA device, SLAB bytes of it for each rank. The host can
// touch none of that, and NCCL nothing else. Each rank says how many copies went from or to memory
// of the host that is not locked, and how much memory was freed while others had it open.

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/process/rank_process.h"
#include "launch/run/rank.h"
#include "pipeline/torch/counting_allocator.h"
#include "pipeline/transport/load_nccl_module.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"
#include "tests/launch/run/device_job.h"
#include "tests/launch/run/small_job.h"
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

DeviceOpener OpenSlab(Bytes bytes) {
  return [bytes](const PreparedJob&, WorkerId) -> absl::StatusOr<OpenedDevice> {
    OpenedDevice opened;
    SIPHON_ASSIGN_OR_RETURN(opened.worker.cuda, LoadCudaModule(SIPHON_CUDA_MODULE));
    SIPHON_ASSIGN_OR_RETURN(opened.nccl, LoadNcclModule(SIPHON_CUDA_MODULE));
    Slab::The().Open(*opened.worker.cuda, bytes);
    testing::UseOtherMemory({[](size_t size) { return Slab::The().Take(size); },
                             [](void* address) { Slab::The().Give(address); },
                             [](void* address) { return Slab::The().Reach(address); }});
    opened.torch = std::make_unique<SlabDevice>();
    opened.worker.torch = opened.torch.get();
    opened.worker.index_of = [](DeviceId) { return 0; };
    return opened;
  };
}

int RunDeviceRank(int argc, char** argv) {
  if (argc != 5) return 2;
  SIPHON_CHECK(FakeCuda::IsThere(), "LD_PRELOAD the fake libcudart");
  InstallCountingAllocator();
  const std::string folder = argv[1];
  JobConfig job = SmallJob("gpt", folder);
  job.pipeline.stages = 4;
  job = PlainJob(job, "cuda", folder);
  job.memory.check = "cheap";  // checksums come back to memory that is not locked
  job = Tight(job, argv[2], std::atoi(argv[3]));
  auto prepared = PrepareJob(job, {});
  SIPHON_CHECK(prepared.ok(), prepared.status().message());
  prepared->share_gpu = true;
  const int code =
      RunRank(&argc, &argv, *prepared, OutputFormat::kText, OpenSlab(Bytes(std::atoll(argv[4]))));
  std::printf("%ld copies of memory that is not locked, %ld freed while others had it open\n",
              FakeCuda::Get("pageable"), FakeCuda::Get("freed_while_opened"));
  return code;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) { return siphon::RunDeviceRank(argc, argv); }
