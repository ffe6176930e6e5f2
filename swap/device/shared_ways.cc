#include "swap/device/shared_ways.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/numeric/int128.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr size_t kWayBytes = 64;  // a cache line each, so that ways do not slow each other down

std::atomic_ref<int64_t> TakenUntil(absl::Span<std::byte> memory, size_t way) {
  static_assert(std::atomic_ref<int64_t>::is_always_lock_free, "between processes");
  return std::atomic_ref<int64_t>(*reinterpret_cast<int64_t*>(memory.data() + way * kWayBytes));
}

}  // namespace

Nanos MovingTime(Bytes bytes, BytesPerSecond rate) {
  if (rate.value == 0) return Nanos(0);
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const absl::int128 time =
      (absl::int128(bytes.value) * kNanosPerSecond + rate.value - 1) / rate.value;
  return Nanos(static_cast<int64_t>(time));
}

Bytes SharedWays::BytesFor(size_t ways) { return Bytes(static_cast<int64_t>(ways * kWayBytes)); }

SharedWays::SharedWays(std::vector<SharedWay> ways, absl::Span<std::byte> memory)
    : ways_(std::move(ways)), memory_(memory) {
  SIPHON_CHECK(static_cast<int64_t>(memory_.size()) >= BytesFor(ways_.size()).value,
               "every way has its place");
  SIPHON_CHECK(reinterpret_cast<uintptr_t>(memory_.data()) % alignof(int64_t) == 0,
               "times are where processors can change them at once");
}

Nanos SharedWays::Book(absl::Span<const SharedWayId> over, Bytes bytes, Nanos begin) const {
  Nanos through = begin;
  for (const SharedWayId way : over) {
    through = std::max(through, BookOne(static_cast<size_t>(way.value), bytes, begin));
  }
  return through;
}

Nanos SharedWays::BookOne(size_t way, Bytes bytes, Nanos begin) const {
  const SharedWay& facts = ways_[way];
  if (facts.rate.value == 0) return begin;
  const std::atomic_ref<int64_t> taken = TakenUntil(memory_, way);
  int64_t until = taken.load(std::memory_order_relaxed);
  while (true) {
    const Nanos start = std::max(Nanos(until), begin);
    BytesPerSecond rate = facts.rate;
    if (facts.back >= 0 && facts.rate_both.value > 0) {
      const size_t back = static_cast<size_t>(facts.back);
      if (TakenUntil(memory_, back).load(std::memory_order_relaxed) > start.value) {
        rate = facts.rate_both;
      }
    }
    const Nanos through = start + MovingTime(bytes, rate);
    if (taken.compare_exchange_weak(until, through.value, std::memory_order_relaxed)) {
      return through;
    }
  }
}

}  // namespace siphon
