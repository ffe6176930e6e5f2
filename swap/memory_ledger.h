#ifndef SIPHON_SWAP_MEMORY_LEDGER_H_
#define SIPHON_SWAP_MEMORY_LEDGER_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "planner/memory/memory_kind.h"
#include "planner/units.h"

namespace siphon {

// The books of one worker's device memory: bytes now and peak, in all and of each kind, and a
// capacity that is never exceeded.
//
// Thread-safety: all methods, from any thread (blocks may be freed by another thread than the one
// that asked).
class MemoryLedger {
 public:
  // Capacity 0 means no limit.
  explicit MemoryLedger(Bytes capacity) : capacity_(capacity) {}
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  // Takes `bytes` onto the books, or returns false and changes nothing if that would exceed the
  // capacity.
  [[nodiscard]] bool Take(Bytes bytes, MemoryKind kind = MemoryKind::kWorkspace);
  // The kind is the one that they were taken as.
  void Give(Bytes bytes, MemoryKind kind = MemoryKind::kWorkspace);

  Bytes used() const { return total_.Now(); }
  Bytes peak() const { return total_.Peak(); }
  Bytes capacity() const { return capacity_; }
  MemoryByKind UsedByKind() const;
  // Of each kind by itself: at different moments, so that they add up to the peak or more.
  MemoryByKind PeakByKind() const;
  // The peaks count anew from what is used now.
  void ResetPeak();

 private:
  class Count {
   public:
    int64_t Add(int64_t bytes) { return now_.fetch_add(bytes, std::memory_order_relaxed) + bytes; }
    void Raise(int64_t now);
    void Reset() { peak_.store(now_.load(std::memory_order_relaxed), std::memory_order_relaxed); }
    Bytes Now() const { return Bytes(now_.load(std::memory_order_relaxed)); }
    Bytes Peak() const { return Bytes(peak_.load(std::memory_order_relaxed)); }

   private:
    std::atomic<int64_t> now_{0};
    std::atomic<int64_t> peak_{0};
  };

  Count& OfKind(MemoryKind kind) { return kinds_[static_cast<size_t>(kind)]; }

  const Bytes capacity_;
  Count total_;
  std::array<Count, kMemoryKinds> kinds_;
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
