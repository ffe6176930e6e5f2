#include "planner/search/weight_streams.h"

#include <gtest/gtest.h>

#include "planner/search/weight_starts.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Weights and gradients of a stage are 9.7 GB, of which a worker has room for 7.
PlanningProblem StreamingProblem() { return GptThatStreams(32, 7'000'000'000); }

// Links carry gradients all the time, and in forwards nothing else.
TEST(BestWeightStreams, HidesGradientsBesideForwards) {
  const PlanningProblem problem = StreamingProblem();
  DraftSimulator simulator(problem);
  const auto blocks = FitWeightBlocks(simulator, IdentityMapping(4));
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  ASSERT_TRUE(Fits(*blocks)) << FormatBytes(blocks->score.excess);
  ASSERT_TRUE(StreamsGradients(blocks->draft.stages[0]));
  const auto ahead = BestWeightStreams(simulator, *blocks);
  ASSERT_TRUE(ahead.ok()) << ahead.status();
  EXPECT_TRUE(Fits(*ahead));
  EXPECT_LT(ahead->score.step.value, blocks->score.step.value * 97 / 100);
}

// Where there is room for them, three buffers hide more of the copies than one.
TEST(BestWeightStreams, TakesTheBuffersThatThereIsRoomFor) {
  PlanningProblem problem = StreamingProblem();
  DraftSimulator simulator(problem);
  const auto blocks = FitWeightBlocks(simulator, IdentityMapping(4));
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  DraftPlan draft = blocks->draft;
  for (StageDraft& stage : draft.stages) stage.stream_buffers = 1;
  const auto one = simulator.Run(draft);
  ASSERT_TRUE(one.ok()) << one.status();
  const auto best = BestWeightStreams(simulator, *one);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_TRUE(Fits(*best));
  EXPECT_LE(best->score.step, blocks->score.step);
  for (const StageDraft& stage : best->draft.stages) EXPECT_GT(stage.stream_buffers, 1);
}

// What three buffers have no room for, two have.
TEST(BestWeightStreams, MakesRoom) {
  PlanningProblem problem = StreamingProblem();
  SetCapacity(problem, Bytes(4'000'000'000));
  DraftSimulator simulator(problem);
  const auto blocks = FitWeightBlocks(simulator, IdentityMapping(4));
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  ASSERT_FALSE(Fits(*blocks));
  const auto best = BestWeightStreams(simulator, *blocks);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_TRUE(Fits(*best)) << FormatBytes(best->score.excess);
  EXPECT_TRUE(TunesStreams(best->draft));
}

TEST(BestWeightStreams, LeavesDraftsInWhichNoneStream) {
  PlanningProblem problem = StreamingProblem();
  problem.capacity.clear();
  DraftSimulator simulator(problem);
  const auto kept = DraftKeep(simulator);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const int before = simulator.simulations();
  const auto ahead = BestWeightStreams(simulator, *kept);
  ASSERT_TRUE(ahead.ok()) << ahead.status();
  EXPECT_EQ(ahead->draft, kept->draft);
  EXPECT_EQ(simulator.simulations(), before);
}

}  // namespace
}  // namespace siphon
