#include "planner/performance/near_memory.h"

namespace siphon {

std::optional<int> NearMemory::Acquire(Bytes bytes) {
  std::optional<int> last;
  while (bytes.value > 0 && held_ + bytes > capacity_ && !releases_.empty()) {
    held_ -= releases_.front().bytes;
    last = releases_.front().task;
    releases_.pop_front();
  }
  held_ += bytes;
  return last;
}

}  // namespace siphon
