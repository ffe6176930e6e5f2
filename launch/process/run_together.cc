#include "launch/process/run_together.h"

#include <atomic>
#include <thread>
#include <vector>

#include "launch/process/core_count.h"

namespace siphon {
namespace {

// Beside those that call: of all calls, as what runs may run others.
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
  const auto take_turns = [&] {
    for (int index = next++; index < count; index = next++) run(index);
  };
  std::vector<std::jthread> others;
  const int most = CoreCount() - 1;
  for (int thread = 1; thread < count && TakeThread(most); ++thread) {
    others.emplace_back([&] {
      take_turns();
      --threads;
    });
  }
  take_turns();
}

}  // namespace siphon
