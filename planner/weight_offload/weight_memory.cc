#include "planner/weight_offload/weight_memory.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace siphon {

void WeightMemory::Insert(Change change) {
  if (change.bytes.value == 0) return;
  held_ += change.bytes;
  const auto behind = [](const Change& a, const Change& b) {
    return std::pair(a.time, a.bytes.value > 0) < std::pair(b.time, b.bytes.value > 0);
  };
  changes_.insert(std::upper_bound(changes_.begin(), changes_.end(), change, behind),
                  std::move(change));
}

std::optional<Nanos> WeightMemory::EarliestFit(Nanos from, Bytes bytes) const {
  if (held_ + bytes > capacity_) return std::nullopt;
  Bytes before = held_;
  for (size_t index = changes_.size(); index > 0; --index) {
    const Change& change = changes_[index - 1];
    if (change.time <= from) break;
    before -= change.bytes;
    if (before + bytes > capacity_) return change.time;
  }
  return from;
}

std::vector<int> WeightMemory::EndsAt(Nanos time) const {
  std::vector<int> ends;
  for (size_t index = changes_.size(); index > 0; --index) {
    const Change& change = changes_[index - 1];
    if (change.time < time) break;
    if (change.time == time) ends.insert(ends.end(), change.ends.begin(), change.ends.end());
  }
  return ends;
}

}  // namespace siphon
