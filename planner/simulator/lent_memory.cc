#include "planner/simulator/lent_memory.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace siphon {

std::vector<Bytes> OwnPeaks(const LentMemory& lent) {
  std::vector<Bytes> peaks;
  for (const std::vector<Bytes>& own : lent.own) {
    peaks.push_back(*std::max_element(own.begin(), own.end()));
  }
  return peaks;
}

MomentCurve::MomentCurve(Bytes begin, Nanos step_time)
    : length_(std::max<int64_t>(
          1, (step_time.value + LentMemory::kMostMoments - 1) / LentMemory::kMostMoments)),
      level_(begin),
      // One more for what happens as the step ends.
      most_(static_cast<size_t>(step_time.value / length_.value) + 1) {
  most_.front() = begin;
}

// What is held at the end of a moment is held in those that follow, until something changes.
void MomentCurve::GoTo(size_t moment) {
  while (now_ < moment) most_[++now_] = level_;
}

void MomentCurve::Change(Bytes bytes, Nanos now) {
  GoTo(static_cast<size_t>(now.value / length_.value));
  level_ += bytes;
  most_[now_] = std::max(most_[now_], level_);
}

std::vector<Bytes> MomentCurve::Take() {
  GoTo(most_.size() - 1);
  return std::move(most_);
}

}  // namespace siphon
