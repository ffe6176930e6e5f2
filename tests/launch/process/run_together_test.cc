#include "launch/process/run_together.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "launch/process/core_count.h"

namespace siphon {
namespace {

TEST(RunTogether, RunsEachOnce) {
  for (const int count : {0, 1, 2, 100}) {
    std::vector<int> runs(static_cast<size_t>(count), 0);
    RunTogether(count, [&](int index) { ++runs[index]; });
    EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(count), 1));
  }
}

// What is run may itself run others.
TEST(RunTogether, CanBeNested) {
  std::atomic<int> runs = 0;
  RunTogether(7, [&](int) { RunTogether(5, [&](int) { ++runs; }); });
  EXPECT_EQ(runs, 35);
}

TEST(RunTogether, HasNoMoreThreadsThanCoresHoweverItIsNested) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  const auto leaf = [&](int) {
    const int now = ++running;
    int before = most;
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
    std::this_thread::yield();
    --running;
  };
  for (int round = 0; round < 20; ++round) {
    RunTogether(8, [&](int) { RunTogether(8, [&](int) { RunTogether(8, leaf); }); });
  }
  EXPECT_LE(most, CoreCount());
  // They are given back: a later call has as many as the first one.
  std::atomic<int> waiting = 0;
  RunTogether(CoreCount(), [&](int) {
    ++waiting;
    while (waiting < CoreCount()) std::this_thread::yield();
  });
  EXPECT_EQ(waiting, CoreCount());
}

// It has nothing more to run, and waits for what another thread runs for it.
TEST(RunTogether, LeavesTheCoreOfACallerThatWaits) {
  if (CoreCount() < 2) GTEST_SKIP() << "one core has no other thread to wait for";
  constexpr int kMostRounds = 10'000;
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> begun = 0;
  std::atomic<bool> at_once = false;
  RunTogether(CoreCount(), [&](int) {
    ++begun;
    while (begun < CoreCount()) std::this_thread::yield();
    if (std::this_thread::get_id() == caller) return;
    for (int round = 0; round < kMostRounds && !at_once; ++round) {
      std::atomic<int> running = 0;
      RunTogether(2, [&](int) {
        ++running;
        for (int turn = 0; turn < 100 && running < 2; ++turn) std::this_thread::yield();
        if (running == 2) at_once = true;
        --running;
      });
    }
  });
  EXPECT_TRUE(at_once);
}

}  // namespace
}  // namespace siphon
