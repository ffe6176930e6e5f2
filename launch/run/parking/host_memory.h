#ifndef SIPHON_LAUNCH_RUN_PARKING_HOST_MEMORY_H_
#define SIPHON_LAUNCH_RUN_PARKING_HOST_MEMORY_H_

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/memory/memory_kind.h"
#include "planner/units.h"
#include "swap/device/cuda_module.h"
#include "swap/device/numa_place.h"
#include "swap/device/nvme_file.h"
#include "swap/memory_ledger.h"

namespace siphon {

// As what the host's books count what workers take there.
inline constexpr MemoryKind kParked = MemoryKind::kLent;
inline constexpr MemoryKind kHostSteps = MemoryKind::kOptimizer;
inline constexpr MemoryKind kDriveBuffers = MemoryKind::kCommunication;
inline constexpr MemoryKind kCarried = MemoryKind::kWorkspace;

// Bytes on the host's books, given back with their owner.
//
// Thread-safety: one thread; the books are for all.
class HostClaim {
 public:
  // `books` outlives it; null: nothing is counted. Errors: ResourceExhausted where the host has not
  // so much left: asked, capacity, and what for all workers together have taken how much.
  static absl::StatusOr<HostClaim> Take(Bytes bytes, MemoryLedger* books, MemoryKind kind);
  HostClaim() = default;
  HostClaim(HostClaim&& other) noexcept;
  HostClaim& operator=(HostClaim&& other) noexcept;
  ~HostClaim();
  // So much more. Errors: as Take, and then it stays as it is.
  absl::Status Add(Bytes bytes);
  void Remove(Bytes bytes);
  Bytes bytes() const { return bytes_; }
  // Of the books; 0: no limit.
  Bytes capacity() const { return books_ == nullptr ? Bytes(0) : books_->capacity(); }

 private:
  HostClaim(MemoryLedger* books, MemoryKind kind) : books_(books), kind_(kind) {}
  MemoryLedger* books_ = nullptr;
  MemoryKind kind_ = kParked;
  Bytes bytes_;  // on the books
};

// Memory of the host that a worker has to itself, zero-filled and there from the begin.
class HostMapping {
 public:
  // Counted on no books. Errors: ResourceExhausted when the machine does not give it.
  static absl::StatusOr<HostMapping> Make(Bytes bytes);
  // `place`: where it is to be; outlives it; null: anywhere. `locks`: of CUDA workers, whose copies
  // need memory that is locked to its pages (that is where it is, then, and no more of it than the
  // books have, nor than LockedAtMost); null: it need not be.
  // Errors: as the above and HostClaim::Take.
  static absl::StatusOr<HostMapping> Make(Bytes bytes, MemoryLedger* books, MemoryKind kind,
                                          const NumaPlace* place = nullptr,
                                          const CudaModule* locks = nullptr);
  // A file of that drive, mapped into memory: on no books, since the machine writes back what it
  // has no room for. `file.bytes` is of no account. Errors: as NvmeFile::Make; ResourceExhausted
  // where it cannot be mapped.
  static absl::StatusOr<HostMapping> MakeOnDrive(Bytes bytes, NvmeFileOptions file,
                                                 const NumaPlace* place = nullptr);
  HostMapping() = default;
  HostMapping(HostMapping&& other) noexcept;
  HostMapping& operator=(HostMapping&& other) noexcept;
  ~HostMapping();
  absl::Span<std::byte> bytes() const { return bytes_; }
  // To so many bytes, what is there with them; it may be elsewhere then. Nothing to do where it has
  // them already. Errors: as Make, and then it stays as it is.
  absl::Status Grow(Bytes bytes);
  // It stays to the end of the process: somebody may still write to it.
  void Leave();

 private:
  absl::Status MapMore(size_t size);
  absl::Status MapFile(size_t size);
  absl::Status LockMore(Bytes bytes);

  HostClaim claim_;
  const NumaPlace* place_ = nullptr;
  const CudaModule* locks_ = nullptr;
  std::optional<NvmeFileOptions> drive_;  // whose file it is in
  std::unique_ptr<PinnedPool> pool_;      // that bytes_ are of, where it is locked
  absl::Span<std::byte> bytes_;           // empty: nothing is mapped
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_HOST_MEMORY_H_
