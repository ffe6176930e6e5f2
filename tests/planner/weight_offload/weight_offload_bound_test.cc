#include "planner/weight_offload/weight_offload_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "planner/weight_offload/layer_to_layer.h"
#include "planner/weight_offload/plan_weight_offload.h"
#include "tests/planner/weight_offload/exhaustive_step.h"
#include "tests/planner/weight_offload/weight_offload_testing.h"

namespace siphon {
namespace {

// Weights of 10, room for four and no gradient: one weight is away in every backward. One that is
// away between F1 and B1 serves B2 to B4, another one B1.
TEST(WeightOffloadBound, FourLayersByHand) {
  WeightOffloadProblem problem = EqualLayers(4, 1, 1, 10, 0, 40);
  EXPECT_EQ(LeastFetchedBytes(problem), Bytes(20));
  EXPECT_EQ(WeightOffloadBound(problem), Nanos(20));
  // What is away in B1 was sent, in 40, since B4 at the earliest: B3 and B2 hide 2 of that.
  problem.out = BytesPerSecond(250'000'000);
  EXPECT_EQ(WeightOffloadBound(problem), Nanos(8 + 38));
  problem.layers[3].forward = Nanos(1000);
  EXPECT_EQ(WeightOffloadBound(problem), Nanos(1007 + 38));
}

TEST(WeightOffloadBound, IsTheComputationWhereAllFits) {
  const WeightOffloadProblem problem = EqualLayers(5, 3, 6, 10, 1, 65);
  EXPECT_EQ(LeastFetchedBytes(problem), Bytes(0));
  EXPECT_EQ(WeightOffloadBound(problem), Nanos(45));
}

// F1 is long, so over the whole step the link is hardly used. But only one of two weights is there
// in a backward, and nothing runs between B2 and B1.
TEST(WeightOffloadBound, SeesATightPlaceInALongStep) {
  WeightOffloadProblem problem = EqualLayers(2, 1, 1, 50, 0, 100);
  problem.layers[0].forward = Nanos(10'000);
  EXPECT_EQ(LeastFetchedBytes(problem), Bytes(100));
  EXPECT_EQ(WeightOffloadBound(problem), Nanos(10'003 + 50));
}

TEST(WeightOffloadBound, NoPlanOfOursIsShorter) {
  RandomProblems problems(2);
  for (int round = 0; round < 400; ++round) {
    const WeightOffloadProblem problem = problems.Next(12, 40);
    const Nanos bound = WeightOffloadBound(problem);
    ASSERT_GE(bound, ComputeTime(problem));
    const auto trimmed = PlanTrimmedWeightOffload(problem);
    ASSERT_TRUE(trimmed.ok()) << trimmed.status();
    ASSERT_LE(bound, trimmed->scheduled.step_time) << "round " << round;
    const auto step = SimulateWeightOffload(problem, LayerToLayerPlan(problem));
    if (!step.ok()) continue;  // its two layers do not fit
    ASSERT_LE(bound, step->step_time) << "round " << round;
  }
}

// All plans of small problems: bound <= optimum <= ours, and ours is nearly always the optimum. The
// bound is the optimum where that does not idle, and seldom elsewhere.
TEST(WeightOffloadBound, NoPlanAtAllIsShorter) {
  RandomProblems problems(3);
  int optimal = 0;
  int tight = 0;
  int idle = 0;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    WeightOffloadProblem problem = EqualLayers(3, 1, 1, 1, 0, 0);
    for (WeightOffloadLayer& layer : problem.layers) {
      layer.forward = Nanos(problems.Between(1, 3));
      layer.backward = Nanos(problems.Between(1, 4));
      layer.weight = Bytes(problems.Between(1, 4));
    }
    problem.capacity = LeastCapacity(problem) + Bytes(problems.Between(0, 5));
    const auto trimmed = PlanTrimmedWeightOffload(problem);
    ASSERT_TRUE(trimmed.ok()) << trimmed.status();
    const Nanos ours = trimmed->scheduled.step_time;
    const std::optional<Nanos> shortest = ShortestStepBySearch(problem, ours + Nanos(1));
    ASSERT_TRUE(shortest.has_value()) << "the search did not find our plan, round " << round;
    ASSERT_LE(WeightOffloadBound(problem), *shortest) << "round " << round;
    optimal += *shortest == ours ? 1 : 0;
    tight += *shortest == WeightOffloadBound(problem) ? 1 : 0;
    idle += *shortest > ComputeTime(problem) ? 1 : 0;
  }
  EXPECT_GT(idle, kRounds / 4) << "the problems are too easy";
  EXPECT_GT(optimal, kRounds * 3 / 4) << optimal << " of " << kRounds;
  EXPECT_GT(tight, kRounds / 3) << tight << " of " << kRounds;
}

}  // namespace
}  // namespace siphon
