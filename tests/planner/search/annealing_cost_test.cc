#include "planner/search/annealing_cost.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

SimulatedDraft DraftWith(Bytes excess, Nanos step) {
  SimulatedDraft draft;
  draft.score = {.excess = excess, .step = step};
  return draft;
}

// The largest capacity is 200.
TEST(AnnealingCost, IsTheStepTimeAndThreeTimesThatForACapacityTooMuch) {
  PlanningProblem problem;
  problem.capacity = {Bytes(100), Bytes(200), Bytes(50)};
  const AnnealingCost cost(problem);
  EXPECT_EQ(cost.Of(DraftWith(Bytes(0), Nanos(1'000))), 1'000);
  EXPECT_EQ(cost.Of(DraftWith(Bytes(100), Nanos(1'000))), 2'500);
  EXPECT_EQ(cost.Of(DraftWith(Bytes(200), Nanos(500))), 2'000);
}

TEST(AnnealingCost, IsTheStepTimeWithoutLimits) {
  EXPECT_EQ(AnnealingCost(PlanningProblem()).Of(DraftWith(Bytes(0), Nanos(700))), 700);
}

}  // namespace
}  // namespace siphon
