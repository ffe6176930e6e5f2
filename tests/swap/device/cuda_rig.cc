// The CUDA backend, from the module, for suites over all kinds of backends: on the fake runtime
// (LD_PRELOAD, as ctest does it), or, with SIPHON_GPU=1, on the real one.

#include "tests/swap/device/cuda_rig.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "swap/device/load_cuda_module.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/swap/device/backend_rig.h"

namespace siphon {
namespace {

// Copies of a chunk have at least so many bytes, checksums that are read back fewer.
constexpr int kLeastOfAChunk = 9;
constexpr size_t kSlab = 4 << 20;

// No suite shall pass because it has met a runtime that it was not meant for.
class RuntimeIsTheOneWanted : public testing::Environment {
 public:
  void SetUp() override {
    ASSERT_NE(FakeCuda::IsThere(), FakeCuda::IsGpuWanted())
        << "LD_PRELOAD the fake libcudart (tests/support/fake_cuda), or set SIPHON_GPU=1 without "
           "it";
  }
};
const auto* const kEnvironment =
    testing::AddGlobalTestEnvironment(new RuntimeIsTheOneWanted());  // gtest owns it

class CudaRig final : public BackendRig {
 public:
  CudaRig() {
    CheckCuda(cudaSetDevice(0), "cudaSetDevice");
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    int devices = 0;
    CheckCuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    lender_ = devices > 1 ? 1 : 0;
  }
  ~CudaRig() override {
    CheckCuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    CheckCuda(cudaStreamDestroy(stream_), "cudaStreamDestroy");
    opened_.clear();
    for (void* const slab : own_) CheckCuda(cudaFree(slab), "cudaFree");
  }

  std::unique_ptr<DeviceBackend> MakeBackend(const RigBackend& backend) override {
    CudaBackendOptions options;
    options.work_stream = stream_;
    options.drive = backend.drive;
    options.ways.resize(static_cast<size_t>(backend.links));
    for (int link = 0; link < backend.links; ++link) {
      options.ways[static_cast<size_t>(link)].chunk = Bytes(backend.chunk);
      options.way_of_link.push_back(link);
    }
    auto made = TheCudaModule().MakeBackend(options);
    SIPHON_CHECK(made.ok(), made.status().message());
    return *std::move(made);
  }

  absl::Span<std::byte> Take(Where where, size_t bytes) override {
    absl::Span<std::byte>& slab = slabs_[where];
    if (slab.size() < bytes) slab = MakeSlab(where, std::max(bytes, kSlab));
    const absl::Span<std::byte> taken = slab.subspan(0, bytes);
    slab.remove_prefix(std::min(slab.size(), (bytes + 63) / 64 * 64));
    return taken;
  }
  void Write(absl::Span<std::byte> to, absl::Span<const std::byte> from) override {
    if (from.empty()) return;
    CheckCuda(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDefault, stream_),
              "writing");
    CheckCuda(cudaStreamSynchronize(stream_), "writing");
  }
  std::vector<std::byte> Read(absl::Span<const std::byte> from) override {
    std::vector<std::byte> bytes(from.size());
    if (from.empty()) return bytes;
    CheckCuda(cudaMemcpyAsync(bytes.data(), from.data(), from.size(), cudaMemcpyDefault, stream_),
              "reading");
    CheckCuda(cudaStreamSynchronize(stream_), "reading");
    return bytes;
  }
  absl::Status CopyNow(void* to, const void* from, size_t bytes) override {
    return TheCudaModule().CopyNow(0, to, from, bytes);
  }

  bool FailChunk(int number) override {
    if (!FakeCuda::IsThere()) return false;
    FakeCuda::Reset();
    FakeCuda::Set("fail_least", kLeastOfAChunk);
    FakeCuda::Set("fail_copy", number + 1);
    return true;
  }
  std::string Failure() const override { return "cudaErrorIllegalAddress"; }
  bool SlowDown() override {
    if (!FakeCuda::IsThere()) return false;
    FakeCuda::Set("delay_ns", 20'000'000);
    return true;
  }
  void Mend() override {
    if (FakeCuda::IsThere()) FakeCuda::Reset();
  }

 private:
  absl::Span<std::byte> MakeSlab(Where where, size_t bytes) {
    absl::Span<std::byte> slab;
    if (where == Where::kWorker) {
      void* memory = nullptr;
      CheckCuda(cudaMalloc(&memory, bytes), "cudaMalloc");
      own_.push_back(memory);
      slab = absl::MakeSpan(static_cast<std::byte*>(memory), bytes);
    } else if (where == Where::kHost) {
      const Bytes wanted(static_cast<int64_t>(bytes));
      auto pool = TheCudaModule().MakePinnedPool({.bytes = wanted, .cap = wanted});
      SIPHON_CHECK(pool.ok(), pool.status().message());
      slab = *(*pool)->Take(wanted);
      pools_.push_back(*std::move(pool));
    } else {
      auto arena = TheCudaModule().MakeArena(lender_, Bytes(static_cast<int64_t>(bytes)));
      SIPHON_CHECK(arena.ok(), arena.status().message());
      auto opened = TheCudaModule().OpenArena(0, (*arena)->handle());
      SIPHON_CHECK(opened.ok(), opened.status().message());
      slab = (*opened)->memory();
      arenas_.push_back(*std::move(arena));
      opened_.push_back(*std::move(opened));
    }
    CheckCuda(cudaMemsetAsync(slab.data(), 0, slab.size(), stream_), "cudaMemsetAsync");
    CheckCuda(cudaStreamSynchronize(stream_), "cudaMemsetAsync");
    return slab;
  }

  cudaStream_t stream_ = nullptr;
  int lender_ = 0;
  std::map<Where, absl::Span<std::byte>> slabs_;  // what is left of them
  std::vector<void*> own_;
  std::vector<std::unique_ptr<PinnedPool>> pools_;
  std::vector<std::unique_ptr<ParkingArena>> arenas_;
  std::vector<std::unique_ptr<OpenedArena>> opened_;
};

}  // namespace

const CudaModule& TheCudaModule() {
  static const CudaModule* const module = [] {
    // The variable: on a machine that the module was taken to.
    const char* const elsewhere = std::getenv("SIPHON_CUDA_MODULE");
    const absl::StatusOr<const CudaModule*> loaded =
        LoadCudaModule(elsewhere == nullptr ? SIPHON_CUDA_MODULE : elsewhere);
    SIPHON_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *module;
}

void CheckCuda(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", doing, cudaGetErrorName(error));
  std::abort();
}

std::string WhyNoRig() {
  const auto devices = TheCudaModule().Devices();
  return devices.ok() ? "" : std::string(devices.status().message());
}

std::unique_ptr<BackendRig> MakeRig() { return std::make_unique<CudaRig>(); }

}  // namespace siphon
