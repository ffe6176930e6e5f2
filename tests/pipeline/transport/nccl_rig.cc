#include "tests/pipeline/transport/nccl_rig.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "pipeline/transport/load_nccl_module.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/support/fake_nccl/fake_nccl_control.h"

namespace siphon {
namespace {

// No suite shall pass because it has met libraries that it was not meant for.
class LibrariesAreTheOnesWanted : public testing::Environment {
 public:
  void SetUp() override {
    ASSERT_NE(FakeCuda::IsThere(), FakeCuda::IsGpuWanted())
        << "LD_PRELOAD the fake libcudart and the fake libnccl (tests/support), or set "
           "SIPHON_GPU=1 without them";
    ASSERT_EQ(FakeNccl::IsThere(), FakeCuda::IsThere()) << "both are fakes, or none is";
  }
};
const auto* const kEnvironment =
    testing::AddGlobalTestEnvironment(new LibrariesAreTheOnesWanted());  // gtest owns it

std::string ModulePath() {
  // The variable: on a machine that the module was taken to.
  const char* const elsewhere = std::getenv("SIPHON_CUDA_MODULE");
  return elsewhere == nullptr ? SIPHON_CUDA_MODULE : elsewhere;
}

class StagedTransport final : public Transport {
 public:
  StagedTransport(std::unique_ptr<Transport> inner, DeviceMemory* memory)
      : inner_(std::move(inner)), memory_(*memory) {}

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    if (channel.lane == Lane::kControl) return inner_->StartSend(channel, std::move(parts));
    for (ConstPart& part : parts) {
      const absl::Span<std::byte> staged = memory_.Take(part.size());
      memory_.Copy(staged.data(), part.data(), part.size());
      part = staged;
    }
    return inner_->StartSend(channel, std::move(parts));
  }

  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    if (channel.lane == Lane::kControl) return inner_->StartReceive(channel, std::move(parts));
    std::vector<MutablePart> staged;
    for (const MutablePart part : parts) staged.push_back(memory_.Take(part.size()));
    SIPHON_ASSIGN_OR_RETURN(const TransferId id, inner_->StartReceive(channel, staged));
    staged_[id.value] = {std::move(staged), std::move(parts)};
    return id;
  }

  absl::StatusOr<bool> Test(TransferId id) override {
    absl::StatusOr<bool> done = inner_->Test(id);
    if (done.ok() && *done) Unload(id);
    return done;
  }

  absl::Status Wait(TransferId id) override {
    SIPHON_RETURN_IF_ERROR(inner_->Wait(id));
    Unload(id);
    return absl::OkStatus();
  }

 private:
  struct Staged {
    std::vector<MutablePart> from, to;
  };

  void Unload(TransferId id) {
    const auto found = staged_.find(id.value);
    if (found == staged_.end()) return;
    const auto& [from, to] = found->second;
    for (size_t part = 0; part < from.size(); ++part) {
      memory_.Copy(to[part].data(), from[part].data(), from[part].size());
    }
    staged_.erase(found);
  }

  const std::unique_ptr<Transport> inner_;
  DeviceMemory& memory_;
  std::map<int64_t, Staged> staged_;
};

}  // namespace

const CudaModule& TheCudaModule() {
  static const CudaModule* const module = [] {
    const absl::StatusOr<const CudaModule*> loaded = LoadCudaModule(ModulePath());
    SIPHON_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *module;
}

const NcclModule& TheNcclModule() {
  static const NcclModule* const module = [] {
    const absl::StatusOr<const NcclModule*> loaded = LoadNcclModule(ModulePath());
    SIPHON_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *module;
}

DeviceMemory::DeviceMemory(int device, Bytes bytes) : device_(device) {
  auto arena = TheCudaModule().MakeArena(device, bytes);
  SIPHON_CHECK(arena.ok(), arena.status().message());
  arena_ = *std::move(arena);
  left_ = arena_->memory();
}

absl::Span<std::byte> DeviceMemory::Take(size_t bytes) {
  SIPHON_CHECK(bytes <= left_.size(), "a test's messages fit into its device memory");
  const absl::Span<std::byte> taken = left_.subspan(0, bytes);
  left_.remove_prefix(std::min(left_.size(), (bytes + 63) / 64 * 64));
  return taken;
}

void DeviceMemory::Copy(void* to, const void* from, size_t bytes) const {
  if (bytes == 0) return;
  const absl::Status copied = TheCudaModule().CopyNow(device_, to, from, bytes);
  SIPHON_CHECK(copied.ok(), copied.message());
}

std::unique_ptr<Transport> StageOnDevice(std::unique_ptr<Transport> inner, DeviceMemory* memory) {
  return std::make_unique<StagedTransport>(std::move(inner), memory);
}

std::vector<Channel> DataChannels(int workers) {
  std::vector<Channel> channels;
  for (int from = 0; from < workers; ++from) {
    for (int to = 0; to < workers; ++to) {
      if (from == to) continue;
      channels.push_back({WorkerId(from), WorkerId(to), Lane::kForward});
      channels.push_back({WorkerId(from), WorkerId(to), Lane::kBackward});
    }
  }
  return channels;
}

}  // namespace siphon
