#include "launch/process/run_together.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

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

}  // namespace
}  // namespace siphon
