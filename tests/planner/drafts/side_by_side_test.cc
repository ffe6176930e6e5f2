#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/planner/drafts/uneven_server.h"
#include "tests/support/all_cases.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

// Each task on a thread of its own, the last one first. `tasks` counts those that run beside
// others.
SideBySide BackwardsOnThreads(int threads, std::atomic<int>& tasks) {
  const auto run = [&tasks](int count, const std::function<void(int)>& task) {
    std::vector<std::jthread> running;
    for (int index = count - 1; index >= 0; --index) running.emplace_back(task, index);
    if (count > 1) tasks += count;
  };
  return {.run = run, .threads = threads};
}

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
  problem.side_by_side = BackwardsOnThreads(4, searches);
  const auto at_once = strategy.plan(problem);
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  EXPECT_GT(searches, 1);
  EXPECT_EQ(at_once->memory, in_turn->memory);
  EXPECT_EQ(at_once->mapping, in_turn->mapping);
  EXPECT_EQ(at_once->schedule, in_turn->schedule);
  EXPECT_EQ(at_once->simulated, in_turn->simulated);
}

// Two stages' activations at the host, whose uplinks are shared.
DraftPlan HostDraft(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  for (const int stage : {0, 1}) draft.stages[stage].activations.assign(2, Placement::kHostSwap);
  return draft;
}

// Returns how many tasks ran beside others.
int ExpectOneProof(PlanningProblem problem, const DraftPlan& draft, const std::string& what) {
  DraftSimulator in_turn(problem);
  const SimulatedDraft first = in_turn.Run(draft).value();
  MapEffort effort = {.maps = 1'000, .parts = 20'000};
  const MappedDraft one_by_one = MapByStepTime(in_turn, first, effort).value();
  effort.at_once = 256;
  const MappedDraft in_lanes = MapByStepTime(in_turn, first, effort).value();
  std::atomic<int> tasks = 0;
  problem.side_by_side = BackwardsOnThreads(3, tasks);
  DraftSimulator together(problem);
  const MappedDraft at_once = MapByStepTime(together, first, effort).value();
  for (const MappedDraft* mapped : {&in_lanes, &at_once}) {
    EXPECT_EQ(mapped->draft.draft, one_by_one.draft.draft) << what;
    EXPECT_EQ(mapped->draft.score, one_by_one.draft.score) << what;
    EXPECT_EQ(mapped->draft.draft.mapping, mapped->found->mapping) << what;
    EXPECT_EQ(mapped->found->mapping, one_by_one.found->mapping) << what;
    EXPECT_EQ(mapped->found->bound, one_by_one.found->bound) << what;
    EXPECT_TRUE(mapped->found->proven) << what;
  }
  EXPECT_EQ(*at_once.found, *in_lanes.found) << what;
  return tasks;
}

// Threads make no other map and no other proof of it, in whatever order they come to theirs.
TEST(MapsSideBySide, AreProvenLikeThoseThatFollowEachOther) {
  int with_lenders = 0;
  int with_host = 0;
  for (const uint32_t seed : {1, 2, 3, 4, 5}) {
    const PlanningProblem problem = ThreeWorkers(UnevenServer(seed, 8));
    const std::string number = absl::StrCat(", seed ", seed);
    with_lenders += ExpectOneProof(problem, MixedDraft(problem), "lenders" + number);
    with_host += ExpectOneProof(problem, HostDraft(problem), "host" + number);
  }
  EXPECT_GT(with_lenders, 0);
  EXPECT_GT(with_host, 0);
}

}  // namespace
}  // namespace siphon
