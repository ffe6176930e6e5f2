#ifndef SIPHON_SWAP_MEMORY_LEDGER_H_
#define SIPHON_SWAP_MEMORY_LEDGER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "planner/memory/memory_kind.h"
#include "planner/units.h"

namespace siphon {

// The books of one memory, a worker's device or the host that workers share: bytes now and peak, in
// all and of each kind, and a capacity that is never exceeded.
//
// Thread-safety: all methods, from any thread (blocks may be freed by another thread than the one
// that asked), and from any process that keeps the same books.
class MemoryLedger {
 public:
  // Capacity 0 means no limit.
  explicit MemoryLedger(Bytes capacity) : capacity_(capacity) {}
  // Books that several ledgers keep together, each with that capacity, in memory that all of them
  // have mapped: SharedBytes of it, at a multiple of 8, zero before the first of them. It outlives
  // this. Empty: as above.
  MemoryLedger(Bytes capacity, absl::Span<std::byte> shared);
  static constexpr Bytes SharedBytes() { return Bytes(sizeof(Books)); }
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  // Takes `bytes` onto the books, or returns false and changes nothing if that would exceed the
  // capacity.
  [[nodiscard]] bool Take(Bytes bytes, MemoryKind kind = MemoryKind::kWorkspace);
  // The kind is the one that they were taken as.
  void Give(Bytes bytes, MemoryKind kind = MemoryKind::kWorkspace);

  Bytes used() const;
  Bytes peak() const;
  Bytes capacity() const { return capacity_; }
  MemoryByKind UsedByKind() const;
  // Of each kind by itself: at different moments, so that they add up to the peak or more.
  MemoryByKind PeakByKind() const;
  // The peaks count anew from what is used now.
  void ResetPeak();

 private:
  // Plain numbers, which are changed as atomics (std::atomic_ref).
  struct Count {
    int64_t now = 0;
    int64_t peak = 0;
  };
  struct Books {
    Count total;
    std::array<Count, kMemoryKinds> kinds;
  };

  Count& OfKind(MemoryKind kind) { return books_->kinds[static_cast<size_t>(kind)]; }

  const Bytes capacity_;
  Books own_;
  Books* const books_ = &own_;
};

// Names the kind of what this thread allocates while it lives; nests. Without one it is workspace.
class MemoryKindScope {
 public:
  explicit MemoryKindScope(MemoryKind kind);
  ~MemoryKindScope();
  MemoryKindScope(const MemoryKindScope&) = delete;
  MemoryKindScope& operator=(const MemoryKindScope&) = delete;

  static MemoryKind Current();

 private:
  const MemoryKind previous_;
};

}  // namespace siphon

#endif  // SIPHON_SWAP_MEMORY_LEDGER_H_
