#include "swap/memory_ledger.h"

#include <utility>

namespace siphon {
namespace {

thread_local MemoryKind kind_of_thread = MemoryKind::kWorkspace;

}  // namespace

void MemoryLedger::Count::Raise(int64_t now) {
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

bool MemoryLedger::Take(Bytes bytes, MemoryKind kind) {
  const int64_t now = total_.Add(bytes.value);
  if (capacity_.value > 0 && now > capacity_.value) {
    total_.Add(-bytes.value);
    return false;
  }
  total_.Raise(now);
  OfKind(kind).Raise(OfKind(kind).Add(bytes.value));
  return true;
}

void MemoryLedger::Give(Bytes bytes, MemoryKind kind) {
  total_.Add(-bytes.value);
  OfKind(kind).Add(-bytes.value);
}

MemoryByKind MemoryLedger::UsedByKind() const {
  MemoryByKind used;
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) used.bytes[kind] = kinds_[kind].Now();
  return used;
}

MemoryByKind MemoryLedger::PeakByKind() const {
  MemoryByKind peak;
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) peak.bytes[kind] = kinds_[kind].Peak();
  return peak;
}

void MemoryLedger::ResetPeak() {
  total_.Reset();
  for (Count& kind : kinds_) kind.Reset();
}

MemoryKindScope::MemoryKindScope(MemoryKind kind)
    : previous_(std::exchange(kind_of_thread, kind)) {}

MemoryKindScope::~MemoryKindScope() { kind_of_thread = previous_; }

MemoryKind MemoryKindScope::Current() { return kind_of_thread; }

}  // namespace siphon
