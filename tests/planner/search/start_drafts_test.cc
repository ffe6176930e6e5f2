#include "planner/search/start_drafts.h"

#include <gtest/gtest.h>

#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// 16 layers a worker have 12.9 GB of weights and gradients, and three layers' optimizer state, 7.3
// GB, as they step: 20.2 GB. The last worker keeps a microbatch whose backward follows at once, 9.9
// GB, unless that holds one layer at a time.
TEST(BestStart, HoldsOneLayerAtATimeWhereMoreDoNotFit) {
  Topology topology = Dgx1V100();
  topology.links.clear();
  PlanningProblem problem = ProblemOf(GptLayer(), 64, LoweredSchedule("1f1b", 4, 8), topology);
  problem.granule = Bytes(2 << 20);
  SetCapacity(problem, Bytes(21'500'000'000));
  DraftSimulator simulator(problem);
  const auto kept = DraftKeep(simulator);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const auto start = BestStart(simulator, *kept);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_TRUE(Fits(*start)) << FormatBytes(start->score.excess);
}

}  // namespace
}  // namespace siphon
