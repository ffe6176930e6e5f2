#include "launch/process/run_together.h"

#include <atomic>
#include <thread>
#include <vector>

#include "launch/process/core_count.h"

namespace siphon {
namespace {

// Beside the first that calls: of all calls, as what runs may run others. Those that only wait for
// the others of their call do not count.
std::atomic<int> threads = 0;

bool TakeThread(int most) {
  int running = threads;
  while (running < most && !threads.compare_exchange_weak(running, running + 1)) {
  }
  return running < most;
}

}  // namespace

void RunTogether(int count, const std::function<void(int)>& run) {
  std::atomic<int> next = 0;
  std::atomic<int> running = 1;
  // Who ends gives its core away; the last one keeps it for the caller.
  const auto take_turns = [&] {
    for (int index = next++; index < count; index = next++) run(index);
    if (--running > 0) --threads;
  };
  std::vector<std::jthread> others;
  const int most = CoreCount() - 1;
  for (int thread = 1; thread < count && TakeThread(most); ++thread) {
    ++running;
    others.emplace_back(take_turns);
  }
  take_turns();
}

}  // namespace siphon
