#include "swap/memory_ledger.h"

namespace siphon {

bool MemoryLedger::Take(Bytes bytes) {
  const int64_t now = used_.fetch_add(bytes.value, std::memory_order_relaxed) + bytes.value;
  if (capacity_.value > 0 && now > capacity_.value) {
    used_.fetch_sub(bytes.value, std::memory_order_relaxed);
    return false;
  }
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

void MemoryLedger::Give(Bytes bytes) { used_.fetch_sub(bytes.value, std::memory_order_relaxed); }

void MemoryLedger::ResetPeak() {
  peak_.store(used_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace siphon
