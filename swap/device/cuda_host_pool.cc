#include "swap/device/cuda_host_pool.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
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

class RegisteredPool final : public PinnedPool {
 public:
  explicit RegisteredPool(absl::Span<std::byte> memory) : memory_(memory) {}
  ~RegisteredPool() override {
    if (registered_) static_cast<void>(cudaHostUnregister(memory_.data()));
    static_cast<void>(cudaGetLastError());
    munmap(memory_.data(), memory_.size());
  }
  absl::Status Register() {
    SIPHON_CUDA_RETURN_IF_ERROR(
        cudaHostRegister(memory_.data(), memory_.size(), cudaHostRegisterPortable),
        absl::StrCat("locking ", memory_.size(), " bytes of the host"));
    registered_ = true;
    return absl::OkStatus();
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

 private:
  const absl::Span<std::byte> memory_;
  size_t taken_ = 0;
  bool registered_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PinnedPool>> MakeCudaHostPool(const PinnedPoolOptions& options) {
  SIPHON_CHECK(options.bytes > Bytes(0) && options.threads > 0, "a pool has bytes");
  if (options.bytes > options.cap) {
    return absl::ResourceExhaustedError(absl::StrCat(options.bytes.value,
                                                     " bytes of locked host memory wanted, a "
                                                     "worker may have ",
                                                     options.cap.value));
  }
  const size_t size = WholePages(static_cast<size_t>(options.bytes.value));
  void* const mapped =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("mapping ", size, " bytes of the host: ", std::strerror(errno)));
  }
  const absl::Span<std::byte> memory = absl::MakeSpan(static_cast<std::byte*>(mapped), size);
  auto pool = std::make_unique<RegisteredPool>(memory);
  // Fewer pages to lock; a kernel without them says no, and nothing is lost.
  static_cast<void>(madvise(mapped, size, MADV_HUGEPAGE));
  // Whoever touches them, pages are then where they shall be.
  NumaPlace::OfThisThread(options.numa_node).Place(memory);
  TouchFirst(memory, options.threads);
  SIPHON_RETURN_IF_ERROR(pool->Register());
  return pool;
}

}  // namespace siphon
