#include "swap/device/cuda_host_pool.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_status.h"
#include "swap/device/numa_place.h"

namespace siphon {
namespace {

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

size_t WholePages(size_t bytes) { return (bytes + PageSize() - 1) / PageSize() * PageSize(); }

// Each of `threads` threads touches its share of the pages.
void TouchFirst(absl::Span<std::byte> memory, int threads) {
  const size_t pages = memory.size() / PageSize();
  const size_t shares = std::max<size_t>(1, std::min(static_cast<size_t>(threads), pages));
  std::vector<std::thread> touching;
  for (size_t share = 0; share < shares; ++share) {
    touching.emplace_back([&, share] {
      const size_t begin = pages * share / shares;
      const size_t end = pages * (share + 1) / shares;
      // Nothing else has the pages yet: they are all zeros.
      for (size_t page = begin; page < end; ++page) {
        *const_cast<volatile std::byte*>(&memory[page * PageSize()]) = std::byte{0};
      }
    });
  }
  for (std::thread& thread : touching) thread.join();
}

absl::Status CheckCap(Bytes bytes, Bytes cap) {
  if (bytes <= cap) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      bytes.value, " bytes of locked host memory wanted, a worker may have ", cap.value));
}

absl::Status NotMapped(size_t size) {
  return absl::ResourceExhaustedError(
      absl::StrCat("mapping ", size, " bytes of the host: ", std::strerror(errno)));
}

class RegisteredPool final : public PinnedPool {
 public:
  // Of the options, where its pages shall be and who touches them.
  explicit RegisteredPool(const PinnedPoolOptions& options)
      : numa_node_(options.numa_node), threads_(options.threads) {}
  ~RegisteredPool() override {
    Unregister();
    if (!memory_.empty()) munmap(memory_.data(), memory_.size());
  }

  absl::Status Make(size_t size) {
    void* const mapped =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return NotMapped(size);
    memory_ = absl::MakeSpan(static_cast<std::byte*>(mapped), size);
    Populate(memory_);
    return Register();
  }

  absl::StatusOr<absl::Span<std::byte>> Take(Bytes bytes) override {
    SIPHON_CHECK(bytes >= Bytes(0), "nobody takes less than nothing");
    if (bytes > left()) {
      return absl::ResourceExhaustedError(
          absl::StrCat(bytes.value, " bytes of locked host memory wanted, ", left().value, " of ",
                       memory_.size(), " are left"));
    }
    const absl::Span<std::byte> taken = memory_.subspan(taken_, static_cast<size_t>(bytes.value));
    taken_ += WholePages(taken.size());
    return taken;
  }
  Bytes left() const override { return Bytes(static_cast<int64_t>(memory_.size() - taken_)); }

  absl::StatusOr<absl::Span<std::byte>> Enlarge(Bytes bytes, Bytes cap) override {
    SIPHON_RETURN_IF_ERROR(CheckCap(bytes, cap));
    const size_t before = memory_.size();
    const size_t size = std::max(before, WholePages(static_cast<size_t>(bytes.value)));
    // The driver has locked pages by their addresses, which change.
    Unregister();
    absl::Status enlarged = Remap(size);
    if (enlarged.ok()) {
      Populate(memory_.subspan(before));
      enlarged = Register();
    }
    if (enlarged.ok()) {
      taken_ = memory_.size();
      return memory_.subspan(0, static_cast<size_t>(bytes.value));
    }
    SIPHON_RETURN_IF_ERROR(Remap(before));
    const absl::Status as_before = Register();
    if (!as_before.ok()) return absl::InternalError(as_before.message());
    return enlarged;
  }

 private:
  void Populate(absl::Span<std::byte> memory) const {
    // Fewer pages to lock; a kernel without them says no, and nothing is lost.
    static_cast<void>(madvise(memory.data(), memory.size(), MADV_HUGEPAGE));
    // Whoever touches them, pages are then where they shall be.
    NumaPlace::OfThisThread(numa_node_).Place(memory);
    TouchFirst(memory, threads_);
  }

  absl::Status Remap(size_t size) {
    void* const mapped = mremap(memory_.data(), memory_.size(), size, MREMAP_MAYMOVE);
    if (mapped == MAP_FAILED) return NotMapped(size);
    memory_ = absl::MakeSpan(static_cast<std::byte*>(mapped), size);
    return absl::OkStatus();
  }

  absl::Status Register() {
    SIPHON_CUDA_RETURN_IF_ERROR(
        cudaHostRegister(memory_.data(), memory_.size(), cudaHostRegisterPortable),
        absl::StrCat("locking ", memory_.size(), " bytes of the host"));
    registered_ = true;
    return absl::OkStatus();
  }

  void Unregister() {
    if (std::exchange(registered_, false)) static_cast<void>(cudaHostUnregister(memory_.data()));
    static_cast<void>(cudaGetLastError());
  }

  const std::optional<int> numa_node_;
  const int threads_;
  absl::Span<std::byte> memory_;
  size_t taken_ = 0;
  bool registered_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PinnedPool>> MakeCudaHostPool(const PinnedPoolOptions& options) {
  SIPHON_CHECK(options.bytes > Bytes(0) && options.threads > 0, "a pool has bytes");
  SIPHON_RETURN_IF_ERROR(CheckCap(options.bytes, options.cap));
  auto pool = std::make_unique<RegisteredPool>(options);
  SIPHON_RETURN_IF_ERROR(pool->Make(WholePages(static_cast<size_t>(options.bytes.value))));
  return pool;
}

}  // namespace siphon
