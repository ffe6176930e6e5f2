#include "swap/memory_ledger.h"

#include <atomic>
#include <utility>

#include "planner/status.h"

namespace siphon {
namespace {

using Number = std::atomic_ref<int64_t>;
static_assert(Number::is_always_lock_free, "between processes");

int64_t Read(const int64_t& number) {
  // An atomic_ref of C++20 wants to be able to write.
  return Number(const_cast<int64_t&>(number)).load(std::memory_order_relaxed);
}

int64_t Add(int64_t& number, int64_t bytes) {
  return Number(number).fetch_add(bytes, std::memory_order_relaxed) + bytes;
}

void Raise(int64_t& number, int64_t now) {
  const Number peak(number);
  int64_t before = peak.load(std::memory_order_relaxed);
  while (now > before && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

thread_local MemoryKind kind_of_thread = MemoryKind::kWorkspace;

}  // namespace

MemoryLedger::MemoryLedger(Bytes capacity, absl::Span<std::byte> shared)
    : capacity_(capacity),
      books_(shared.empty() ? &own_ : reinterpret_cast<Books*>(shared.data())) {
  SIPHON_CHECK(shared.empty() || static_cast<int64_t>(shared.size()) >= SharedBytes().value,
               "shared books have their memory");
  SIPHON_CHECK(reinterpret_cast<uintptr_t>(books_) % alignof(Books) == 0,
               "numbers are where processors can change them at once");
}

bool MemoryLedger::Take(Bytes bytes, MemoryKind kind) {
  Count& total = books_->total;
  const int64_t now = Add(total.now, bytes.value);
  if (capacity_.value > 0 && now > capacity_.value) {
    Add(total.now, -bytes.value);
    return false;
  }
  Raise(total.peak, now);
  Raise(OfKind(kind).peak, Add(OfKind(kind).now, bytes.value));
  return true;
}

void MemoryLedger::Give(Bytes bytes, MemoryKind kind) {
  Add(books_->total.now, -bytes.value);
  Add(OfKind(kind).now, -bytes.value);
}

Bytes MemoryLedger::used() const { return Bytes(Read(books_->total.now)); }
Bytes MemoryLedger::peak() const { return Bytes(Read(books_->total.peak)); }

MemoryByKind MemoryLedger::UsedByKind() const {
  MemoryByKind used;
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
    used.bytes[kind] = Bytes(Read(books_->kinds[kind].now));
  }
  return used;
}

MemoryByKind MemoryLedger::PeakByKind() const {
  MemoryByKind peak;
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
    peak.bytes[kind] = Bytes(Read(books_->kinds[kind].peak));
  }
  return peak;
}

void MemoryLedger::ResetPeak() {
  const auto reset = [](Count& count) {
    Number(count.peak).store(Read(count.now), std::memory_order_relaxed);
  };
  reset(books_->total);
  for (Count& kind : books_->kinds) reset(kind);
}

MemoryKindScope::MemoryKindScope(MemoryKind kind)
    : previous_(std::exchange(kind_of_thread, kind)) {}

MemoryKindScope::~MemoryKindScope() { kind_of_thread = previous_; }

MemoryKind MemoryKindScope::Current() { return kind_of_thread; }

}  // namespace siphon
