#include "planner/search/weight_starts.h"

#include <gtest/gtest.h>

#include <utility>

#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Weights and gradients of a stage are 19.3 GB, and a worker has 18.5. With all layers computed
// again a few gradients are enough to leave; with all weights away a step takes many times as long.
TEST(FitWeightBlocks, SendsNoMoreWeightsThanItMust) {
  const PlanningProblem problem = GptThatStreams(64, 18'500'000'000);
  DraftSimulator simulator(problem);
  const auto kept = DraftKeep(simulator);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const auto blocks = FitWeightBlocks(simulator, kept->draft.mapping);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  ASSERT_TRUE(Fits(*blocks)) << FormatBytes(blocks->score.excess);
  EXPECT_LT(blocks->score.step.value, kept->score.step.value * 2);
}

// A backward has 1.9 GB of weights and gradients in of any three layers at once.
TEST(FitWeightBlocks, FitsIntoLessWithFewerBuffers) {
  for (const auto& [gigabytes, most] : {std::pair(7, 3), std::pair(4, 2), std::pair(3, 1)}) {
    const PlanningProblem problem = GptThatStreams(32, gigabytes * 1'000'000'000LL);
    DraftSimulator simulator(problem);
    for (int buffers = 1; buffers <= kMostStreamBuffers; ++buffers) {
      const auto blocks = FitWeightBlocks(simulator, IdentityMapping(4), buffers);
      ASSERT_TRUE(blocks.ok()) << blocks.status();
      EXPECT_EQ(Fits(*blocks), buffers <= most) << buffers << " in " << gigabytes << " GB";
      for (const StageDraft& stage : blocks->draft.stages) {
        EXPECT_EQ(stage.stream_buffers, buffers);
      }
    }
  }
}

}  // namespace
}  // namespace siphon
