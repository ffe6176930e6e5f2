#include "launch/process/run_together.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "launch/process/core_count.h"

namespace siphon {

void RunTogether(int count, const std::function<void(int)>& run) {
  std::atomic<int> next = 0;
  const auto take_turns = [&] {
    for (int index = next++; index < count; index = next++) run(index);
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < std::min(count, CoreCount()); ++thread) {
    others.emplace_back(take_turns);
  }
  take_turns();
}

}  // namespace siphon
