#include "planner/simulator/engine/shared_cores.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

namespace siphon {
namespace {

// The least common multiple of 1 to 16: what so many tasks share divides without a rest.
constexpr int64_t kParts = 720'720;
constexpr int64_t kThousandths = 1'000;
// Progress in a nanosecond alone.
constexpr int64_t kUnits = kParts * kThousandths;

}  // namespace

// Of each task, units a nanosecond.
int64_t SharedCores::Rate() const {
  const size_t running = running_.size();
  const int64_t all = together_[std::min(running, together_.size()) - 1];
  return std::max<int64_t>(1, all * kParts / static_cast<int64_t>(running));
}

void SharedCores::AdvanceTo(Nanos now) {
  if (!running_.empty()) {
    progress_ += absl::uint128(Rate()) * absl::uint128((now - since_).value);
  }
  since_ = now;
}

void SharedCores::Restore(State state) {
  progress_ = state.progress;
  since_ = state.since;
  running_ = std::move(state.running);
  std::make_heap(running_.begin(), running_.end(), std::greater<>());
}

void SharedCores::Begin(int task, Nanos work, Nanos now) {
  AdvanceTo(now);
  running_.emplace_back(progress_ + absl::uint128(work.value) * kUnits, task);
  std::push_heap(running_.begin(), running_.end(), std::greater<>());
}

bool SharedCores::IsRunning(int task) const {
  return std::any_of(running_.begin(), running_.end(),
                     [task](const End& end) { return end.second == task; });
}

std::optional<Nanos> SharedCores::NextEnd() const {
  if (running_.empty()) return std::nullopt;
  const absl::uint128 end = running_.front().first;
  if (end <= progress_) return since_;
  const absl::uint128 rate(Rate());
  const absl::uint128 wait = (end - progress_ + rate - 1) / rate;
  return since_ + Nanos(static_cast<int64_t>(absl::Uint128Low64(wait)));
}

const std::vector<int>& SharedCores::TakeEnded(Nanos now) {
  ended_.clear();
  AdvanceTo(now);
  while (!running_.empty() && running_.front().first <= progress_) {
    ended_.push_back(running_.front().second);
    std::pop_heap(running_.begin(), running_.end(), std::greater<>());
    running_.pop_back();
  }
  return ended_;
}

}  // namespace siphon
