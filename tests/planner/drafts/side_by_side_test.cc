#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "planner/strategies/memory_strategy.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/support/all_cases.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

TEST(SearchesSideBySide, FindThePlanOfThoseThatFollowEachOther) {
  if (kSanitized && !TakesAllCases()) {
    GTEST_SKIP()
        << "skipped, because it takes minutes under a sanitizer; SIPHON_TEST_ALL=1 runs it";
  }
  // So little that all searches are tried.
  PlanningProblem problem = TwoFullWorkers(Bytes(250));
  const MemoryStrategy strategy = *FindMemoryStrategy("auto");
  const auto in_turn = strategy.plan(problem);
  ASSERT_TRUE(in_turn.ok()) << in_turn.status();

  std::atomic<int> searches = 0;
  problem.side_by_side = {.run =
                              [&](int count, const std::function<void(int)>& task) {
                                std::vector<std::jthread> threads;
                                for (int index = count - 1; index >= 0; --index) {
                                  threads.emplace_back(task, index);
                                }
                                searches += count;
                              },
                          .threads = 4};
  const auto at_once = strategy.plan(problem);
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  EXPECT_GT(searches, 1);
  EXPECT_EQ(at_once->memory, in_turn->memory);
  EXPECT_EQ(at_once->mapping, in_turn->mapping);
  EXPECT_EQ(at_once->schedule, in_turn->schedule);
  EXPECT_EQ(at_once->simulated, in_turn->simulated);
}

}  // namespace
}  // namespace siphon
