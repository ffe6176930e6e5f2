#include "swap/device/cuda_host_pool.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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

absl::Status NotMapped(size_t size) {
  return absl::ResourceExhaustedError(
      absl::StrCat("mapping ", size, " bytes of the host: ", std::strerror(errno)));
}

class RegisteredPool final : public PinnedPool {
 public:
  explicit RegisteredPool(const PinnedPoolOptions& options) : options_(options) {}
  ~RegisteredPool() override {
    Unregister();
    if (!reserved_.empty()) munmap(reserved_.data(), reserved_.size());
  }

  absl::Status Make() {
    SIPHON_RETURN_IF_ERROR(CheckCap(options_.bytes));
    const size_t size = WholePages(static_cast<size_t>(options_.bytes.value));
    SIPHON_RETURN_IF_ERROR(Reserve(size));
    SIPHON_RETURN_IF_ERROR(Extend(size));
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

  absl::StatusOr<absl::Span<std::byte>> Enlarge(Bytes bytes) override {
    SIPHON_RETURN_IF_ERROR(CheckCap(bytes));
    const size_t before = memory_.size();
    const size_t size = std::max(before, WholePages(static_cast<size_t>(bytes.value)));
    if (size > reserved_.size()) return NotReserved(size);
    // The driver locks a range as a whole.
    Unregister();
    absl::Status enlarged = Extend(size);
    if (enlarged.ok()) enlarged = Register();
    if (enlarged.ok()) {
      taken_ = memory_.size();
      return memory_.subspan(0, static_cast<size_t>(bytes.value));
    }
    Shrink(before);
    const absl::Status as_before = Register();
    if (!as_before.ok()) return absl::InternalError(as_before.message());
    return enlarged;
  }

 private:
  absl::Status CheckCap(Bytes bytes) const {
    if (bytes <= options_.cap) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes.value, " bytes of locked host memory wanted, a worker may have ",
                     options_.cap.value));
  }

  absl::Status NotReserved(size_t size) const {
    return absl::ResourceExhaustedError(absl::StrCat(
        size, " bytes of locked host memory wanted, where ", reserved_.size(), " have addresses"));
  }

  // Addresses for all that it may ever have, so that nothing moves; pages come with Extend. Who may
  // not have so many (ulimit) has those of its first size.
  absl::Status Reserve(size_t least) {
    for (const size_t size : {WholePages(static_cast<size_t>(options_.cap.value)), least}) {
      void* const mapped =
          mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (mapped == MAP_FAILED) continue;
      reserved_ = absl::MakeSpan(static_cast<std::byte*>(mapped), size);
      return absl::OkStatus();
    }
    return NotMapped(least);
  }

  absl::Status Extend(size_t size) {
    const absl::Span<std::byte> more = reserved_.subspan(memory_.size(), size - memory_.size());
    if (mprotect(more.data(), more.size(), PROT_READ | PROT_WRITE) != 0) return NotMapped(size);
    memory_ = reserved_.subspan(0, size);
    // Fewer pages to lock; a kernel without them says no, and nothing is lost.
    static_cast<void>(madvise(more.data(), more.size(), MADV_HUGEPAGE));
    // Whoever touches them, pages are then where they shall be.
    NumaPlace::OfThisThread(options_.numa_node).Place(more);
    TouchFirst(more, options_.threads);
    return absl::OkStatus();
  }

  // Gives the pages beyond back.
  void Shrink(size_t size) {
    const absl::Span<std::byte> less = memory_.subspan(size);
    if (less.empty()) return;
    static_cast<void>(madvise(less.data(), less.size(), MADV_DONTNEED));
    static_cast<void>(mprotect(less.data(), less.size(), PROT_NONE));
    memory_ = reserved_.subspan(0, size);
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

  const PinnedPoolOptions options_;
  absl::Span<std::byte> reserved_;
  absl::Span<std::byte> memory_;  // its begin
  size_t taken_ = 0;
  bool registered_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PinnedPool>> MakeCudaHostPool(const PinnedPoolOptions& options) {
  SIPHON_CHECK(options.bytes > Bytes(0) && options.threads > 0, "a pool has bytes");
  auto pool = std::make_unique<RegisteredPool>(options);
  SIPHON_RETURN_IF_ERROR(pool->Make());
  return pool;
}

}  // namespace siphon
