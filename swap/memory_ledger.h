#ifndef SIPHON_SWAP_MEMORY_LEDGER_H_
#define SIPHON_SWAP_MEMORY_LEDGER_H_

#include <atomic>
#include <cstdint>

#include "planner/units.h"

namespace siphon {

// The books of one worker's device memory: bytes now, peak, and a capacity that is never exceeded.
//
// Thread-safety: all methods, from any thread (blocks may be freed by another thread than the one that asked).
class MemoryLedger {
 public:
  // Capacity 0 means no limit.
  explicit MemoryLedger(Bytes capacity) : capacity_(capacity) {}
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  // Takes `bytes` onto the books, or returns false and changes nothing if that would exceed the capacity.
  [[nodiscard]] bool Take(Bytes bytes);
  void Give(Bytes bytes);

  Bytes used() const { return Bytes(used_.load(std::memory_order_relaxed)); }
  Bytes peak() const { return Bytes(peak_.load(std::memory_order_relaxed)); }
  Bytes capacity() const { return capacity_; }
  // The peak counts anew from what is used now.
  void ResetPeak();

 private:
  const Bytes capacity_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace siphon

#endif  // SIPHON_SWAP_MEMORY_LEDGER_H_
