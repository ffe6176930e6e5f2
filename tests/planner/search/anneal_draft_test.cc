#include "planner/search/anneal_draft.h"

#include <gtest/gtest.h>

#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// One of the two workers alone that computes less again gains nothing, since the other one waits as
// long in its place.
TEST(AnnealDraft, ChangesNeighboursTogether) {
  const PlanningProblem problem = TwoFullWorkers(Bytes(1'400));
  DraftSimulator simulator(problem);
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    stage.activations.assign(stage.activations.size(), Placement::kRecompute);
  }
  const auto start = simulator.Run(draft);
  ASSERT_TRUE(start.ok() && Fits(*start)) << start.status();
  const auto anneal = [&](AnnealedStages stages) {
    auto annealed = AnnealDraft(simulator, *start, 60, WeightSearch::kOnlyBack, stages);
    EXPECT_TRUE(annealed.ok()) << annealed.status();
    return *std::move(annealed);
  };
  const SimulatedDraft one = anneal(AnnealedStages::kOne);
  const SimulatedDraft neighbours = anneal(AnnealedStages::kNeighbours);
  EXPECT_TRUE(Fits(neighbours));
  EXPECT_LT(neighbours.score.step, one.score.step);
  EXPECT_LE(one.score.step, start->score.step);
  EXPECT_EQ(neighbours.draft, anneal(AnnealedStages::kNeighbours).draft);
}

}  // namespace
}  // namespace siphon
