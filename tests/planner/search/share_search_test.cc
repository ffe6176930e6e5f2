// Searching of how many microbatches what goes does.

#include "planner/search/share_search.h"

#include <gtest/gtest.h>

#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// One worker, one layer, eight microbatches, all forwards first, 10 bytes each; no way but to
// compute again.
PlanningProblem OneLayer(int64_t capacity) {
  Topology topology;
  topology.devices.resize(1);
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .saved = {{"all", Bytes(10)}}},
                                      1, LoweredSchedule("gpipe", 1, 8), std::move(topology));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(capacity));
  return problem;
}

// 80 bytes with everything kept; 50 are enough for five microbatches, and all eight are computed
// again where the layer goes as a whole.
TEST(ShareSearch, LetsAsFewMicrobatchesGoAsNeeded) {
  const PlanningProblem problem = OneLayer(50);
  DraftSimulator simulator(problem);
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations[0] = Placement::kRecompute;
  const auto start = simulator.Run(draft);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->score.step, Nanos(8 * 3'000 + 8 * 1'000));
  const auto found = SearchShares(simulator, *start, 100);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(Fits(*found));
  EXPECT_EQ(found->draft.stages[0].shares[0], 4);
  EXPECT_EQ(found->peaks[0], Bytes(50));
  EXPECT_EQ(found->score.step, Nanos(8 * 3'000 + 4 * 1'000));
  const auto planned = PlanAuto(problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_LE(planned->simulated.step_time, found->score.step);
}

TEST(ShareSearch, IsNeverWorseThanTheStartAndKeepsItsLimit) {
  for (const int64_t capacity : {10, 35, 50, 70, 75}) {
    for (const int most : {0, 2, 100}) {
      const PlanningProblem problem = OneLayer(capacity);
      DraftSimulator simulator(problem);
      DraftPlan draft = KeepingDraft(problem);
      draft.stages[0].activations[0] = Placement::kRecompute;
      const auto start = simulator.Run(draft);
      ASSERT_TRUE(start.ok()) << start.status();
      const int before = simulator.simulations();
      const auto found = SearchShares(simulator, *start, most);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_LE(found->score, start->score);
      EXPECT_LE(simulator.simulations() - before, most);
      EXPECT_TRUE(most > 0 || found->draft == start->draft);
    }
  }
}

}  // namespace
}  // namespace siphon
