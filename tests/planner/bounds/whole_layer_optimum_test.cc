#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "planner/bounds/linear/solve_linear_program.h"
#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

constexpr int kNodes = 10'000;

// One stage of layers that nobody lends to: which of them are computed again?
PlanningProblem Knapsack(Dice& dice) {
  PlanningProblem problem =
      ProblemOf(ScheduleOf("gpipe", 1, 3), PlainLayer(), Bytes(1), dice.Roll(1, 5));
  problem.topology = Islands(1);
  Bytes stash;
  for (LayerProfile& layer : problem.profile.layers) {
    layer.forward = Nanos(dice.Roll(1, 9'000));
    layer.saved[0].bytes = Bytes(dice.Roll(1, 9'000));
    stash += layer.saved[0].bytes;
  }
  problem.capacity = {Bytes(3 * stash.value * dice.Roll(1, 10) / 10)};
  return problem;
}

// By trying every set of layers.
Nanos BestOfAllSets(const PlanningProblem& problem) {
  const std::vector<LayerProfile>& layers = problem.profile.layers;
  Nanos best(std::numeric_limits<int64_t>::max());
  for (unsigned dropped = 0; dropped < 1u << layers.size(); ++dropped) {
    Bytes kept;
    Nanos time;
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      const bool again = (dropped >> layer & 1u) != 0;
      time += (layers[layer].forward * (again ? 2 : 1) + WholeBackward(layers[layer])) * 3;
      if (!again) kept += layers[layer].saved[0].bytes * 3;
    }
    if (kept <= problem.capacity[0]) best = std::min(best, time);
  }
  return best;
}

TEST(WholeLayerOptimum, IsTheBestOfAllSetsOfLayers) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  for (int seed = 0; seed < 12; ++seed) {
    Dice dice(seed);
    const PlanningProblem problem = Knapsack(dice);
    EXPECT_EQ(WholeLayerOptimum(problem, kNodes).value(), BestOfAllSets(problem)) << seed;
    EXPECT_LE(BoundOf(problem).step_time, BestOfAllSets(problem)) << seed;
  }
}

TEST(WholeLayerOptimum, OfStepsThatFitIsTheSchedule) {
  EXPECT_EQ(
      WholeLayerOptimum(ProblemOf(ScheduleOf("1f1b", 2, 3), PlainLayer(), Bytes(0)), 1).value(),
      Nanos(120'000));
}

TEST(WholeLayerOptimum, SaysThatNoSetIsEnough) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  Dice dice(1);
  PlanningProblem problem = Knapsack(dice);
  problem.profile.layers[0].parameters = problem.capacity[0] + Bytes(1);
  EXPECT_EQ(WholeLayerOptimum(problem, kNodes).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace siphon
