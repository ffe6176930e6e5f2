// The CPU backend for suites over all kinds of backends.

#include <atomic>
#include <chrono>
#include <cstring>
#include <list>
#include <thread>

#include "tests/swap/device/backend_rig.h"

namespace siphon {
namespace {

class CpuRig final : public BackendRig {
 public:
  std::unique_ptr<DeviceBackend> MakeBackend(const RigBackend& backend) override {
    CpuBackendOptions options;
    options.links.resize(static_cast<size_t>(backend.links));
    options.chunk = Bytes(backend.chunk);
    options.drive = backend.drive;
    options.before_chunk = [this](const CopyChunk&) {
      if (slow_) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return chunks_++ == failing_ ? absl::UnavailableError("injected") : absl::OkStatus();
    };
    return std::make_unique<CpuBackend>(std::move(options));
  }
  absl::Span<std::byte> Take(Where, size_t bytes) override {
    return absl::MakeSpan(memory_.emplace_back(bytes));
  }
  void Write(absl::Span<std::byte> to, absl::Span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  }
  std::vector<std::byte> Read(absl::Span<const std::byte> from) override {
    return {from.begin(), from.end()};
  }
  absl::Status CopyNow(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  bool FailChunk(int number) override {
    chunks_ = 0;
    failing_ = number;
    return true;
  }
  std::string Failure() const override { return "injected"; }
  bool SlowDown() override { return slow_ = true; }
  void Mend() override {
    failing_ = -1;
    slow_ = false;
  }

 private:
  std::list<std::vector<std::byte>> memory_;
  std::atomic<int> chunks_ = 0;
  std::atomic<int> failing_ = -1;
  std::atomic<bool> slow_ = false;
};

}  // namespace

std::string WhyNoRig() { return ""; }

std::unique_ptr<BackendRig> MakeRig() { return std::make_unique<CpuRig>(); }

}  // namespace siphon
