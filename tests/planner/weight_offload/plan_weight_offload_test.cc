#include "planner/weight_offload/plan_weight_offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/planner/weight_offload/weight_offload_testing.h"

namespace siphon {
namespace {

constexpr auto kOverLoss = RemovalGap::kForwardToBackward;
constexpr auto kOverStep = RemovalGap::kBackwardToForward;

std::vector<Removal> Selected(const WeightOffloadProblem& problem, Discount discount,
                              Ties ties = Ties::kLastLayer) {
  const auto removals = SelectRemovals(problem, discount, ties);
  EXPECT_TRUE(removals.ok()) << removals.status();
  return removals.ok() ? *removals : std::vector<Removal>{};
}

WeightOffloadChoice Planned(const WeightOffloadProblem& problem, Discount discount,
                            Ties ties = Ties::kLastLayer) {
  auto choice = PlanWeightOffload(problem, discount, ties);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return *std::move(choice);
}

// E of backwards is 10, of forwards 0. (1, 1) covers B3 and B2, (3, 0) covers B2 and B1. Taking the
// first, only B1 is left, which (2, 0) and (3, 0) cover; taking the other, B3, which (1, 1) and
// (2, 1) cover.
TEST(SelectRemovals, ThreeLayersByHand) {
  const WeightOffloadProblem problem = EqualLayers(3, 20, 40, 10, 0, 40);
  EXPECT_EQ(Selected(problem, Discount::kUse, Ties::kFirstLayer),
            (std::vector<Removal>{{0, kOverLoss}, {1, kOverStep}}));
  EXPECT_EQ(Selected(problem, Discount::kUse, Ties::kLastLayer),
            (std::vector<Removal>{{2, kOverStep}, {1, kOverLoss}}));
}

// With room for one less, after (1, 1), (2, 1) and (3, 0) the discount makes (2, 0) twice as
// profitable as any other.
TEST(SelectRemovals, TheDiscountFavoursWeightsThatLeaveAlready) {
  const WeightOffloadProblem problem = EqualLayers(6, 20, 40, 10, 0, 45);
  const auto both = [](const std::vector<Removal>& removals) {
    return std::count_if(removals.begin(), removals.end(), [&](const Removal& removal) {
      return removal.gap == kOverLoss &&
             std::find(removals.begin(), removals.end(), Removal{removal.layer, kOverStep}) !=
                 removals.end();
    });
  };
  EXPECT_GT(both(Selected(problem, Discount::kUse)), both(Selected(problem, Discount::kIgnore)));
}

TEST(SelectRemovals, SelectsNothingWhereAllFits) {
  EXPECT_TRUE(Selected(EqualLayers(4, 20, 40, 10, 1, 64), Discount::kUse).empty());
  EXPECT_FALSE(Selected(EqualLayers(4, 20, 40, 10, 1, 63), Discount::kUse).empty());
}

TEST(SelectRemovals, LeavesNoOperationOverflowing) {
  RandomProblems problems(4);
  for (int round = 0; round < 300; ++round) {
    const WeightOffloadProblem problem = problems.Next(12, 50);
    for (const Discount discount : {Discount::kUse, Discount::kIgnore}) {
      const std::vector<Removal> removals = Selected(problem, discount);
      std::vector<Bytes> overflows = LeastOverflows(problem);
      for (int operation = 0; operation < OperationCount(problem); ++operation) {
        const int layer = LayerOf(problem, operation);
        for (const Removal& removal : removals) {
          const bool away =
              removal.gap == kOverLoss ? removal.layer < layer : removal.layer > layer;
          if (away) overflows[operation] -= problem.layers[removal.layer].weight;
        }
        ASSERT_LE(overflows[operation], Bytes(0))
            << "round " << round << " " << OperationName(problem, operation);
      }
    }
  }
}

// Layer 2 leaves after its backward and is back before its forward. Layer 1 leaves after its
// forward, having been sent before it has ended.
TEST(PlanWeightOffload, ThreeLayersByHand) {
  const WeightOffloadProblem problem = EqualLayers(3, 20, 40, 10, 0, 40);
  const WeightOffloadChoice choice = Planned(problem, Discount::kUse, Ties::kFirstLayer);
  const WeightOffloadStep step = Simulated(problem, choice.scheduled.plan);
  EXPECT_EQ(ToString(choice.scheduled.plan, step),
            "B3 [0, 40)\n"
            "fetch 1 [0, 10)\n"
            "B2 [40, 80)\n"
            "send 2 [80, 90)\n"
            "B1 [80, 120)\n"
            "delete 2 at 90\n"
            "fetch 2 [90, 100)\n"
            "F1 [120, 140)\n"
            "send 1 [120, 130)\n"
            "delete 1 at 140\n"
            "F2 [140, 160)\n"
            "F3 [160, 180)\n");
  EXPECT_EQ(step.idle, Nanos(0));
}

TEST(PlanWeightOffload, DoesNothingWhereAllFits) {
  const WeightOffloadProblem problem = EqualLayers(4, 20, 40, 10, 1, 64);
  const WeightOffloadChoice choice = Planned(problem, Discount::kUse);
  EXPECT_EQ(choice.scheduled.plan.tasks.size(), 8u);
  EXPECT_EQ(choice.scheduled.step_time, ComputeTime(problem));
}

TEST(PlanWeightOffload, PlansOneLayer) {
  const WeightOffloadProblem problem = EqualLayers(1, 20, 40, 10, 1, 21);
  EXPECT_EQ(Planned(problem, Discount::kUse).scheduled.step_time, Nanos(60));
}

TEST(PlanWeightOffload, RefusesWhatDoesNotFitByItself) {
  const auto choice = PlanWeightOffload(EqualLayers(4, 20, 40, 10, 1, 20), Discount::kUse);
  EXPECT_TRUE(absl::IsResourceExhausted(choice.status())) << choice.status();
}

TEST(PlanWeightOffload, WhatItClaimsIsWhatTheSimulationGives) {
  RandomProblems problems(5);
  int moving = 0;
  for (int round = 0; round < 300; ++round) {
    const WeightOffloadProblem problem = problems.Next(14, 60);
    for (const Discount discount : {Discount::kUse, Discount::kIgnore}) {
      const WeightOffloadChoice choice = Planned(problem, discount);
      const WeightOffloadStep step = Simulated(problem, choice.scheduled.plan);
      ASSERT_EQ(step.step_time, choice.scheduled.step_time) << "round " << round;
      ASSERT_GE(step.idle, Nanos(0));
      moving += step.sent.value > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(moving, 200) << "the problems are too easy";
}

TEST(PlanWeightOffload, EveryCuttingPointThatFitsIsAValidPlan) {
  RandomProblems problems(6);
  int early = 0;
  int late = 0;
  for (int round = 0; round < 100; ++round) {
    const WeightOffloadProblem problem = problems.Next(10, 60);
    const std::vector<Removal> removals = Selected(problem, Discount::kUse);
    const auto check = [&](CuttingPoint cut) {
      const auto scheduled = ScheduleRemovals(problem, removals, Discount::kUse, cut);
      if (!scheduled) return 0;
      EXPECT_EQ(Simulated(problem, scheduled->plan).step_time, scheduled->step_time)
          << "round " << round << " cut " << cut.early << " " << cut.late;
      return 1;
    };
    EXPECT_EQ(check({0, 0}), 1) << "round " << round;
    for (int cut = 1; cut <= NumFetchesForBackward(removals); ++cut) early += check({cut, 0});
    for (int cut = 1; cut <= NumSendsAfterForward(removals, Discount::kUse); ++cut) {
      late += check({0, cut});
    }
  }
  EXPECT_GT(early, 50);
  EXPECT_GT(late, 50);
}

// A weight that is away in both gaps is fetched twice and sent once, or twice without the discount.
TEST(PlanWeightOffload, TheDiscountSendsAWeightOnceAStep) {
  const WeightOffloadProblem problem = EqualLayers(3, 20, 40, 10, 0, 40);
  const std::vector<Removal> removals = {{1, kOverLoss}, {1, kOverStep}};
  const auto with = ScheduleRemovals(problem, removals, Discount::kUse, {0, 0});
  const auto without = ScheduleRemovals(problem, removals, Discount::kIgnore, {0, 0});
  ASSERT_TRUE(with && without);
  EXPECT_EQ(Simulated(problem, with->plan).sent, Bytes(10));
  EXPECT_EQ(Simulated(problem, without->plan).sent, Bytes(20));
  EXPECT_EQ(Simulated(problem, with->plan).fetched, Bytes(20));
  EXPECT_EQ(Simulated(problem, without->plan).fetched, Bytes(20));
}

// Only F2 still needs weight 2 after B2. It is sent at once, as the link is idle, and not in the 30
// after F2.
TEST(PlanWeightOffload, SendsEarlyWhatOnlyItsForwardStillNeeds) {
  const WeightOffloadProblem problem = EqualLayers(3, 20, 40, 30, 0, 1000);
  const auto scheduled = ScheduleRemovals(problem, {{1, kOverLoss}}, Discount::kUse, {0, 0});
  ASSERT_TRUE(scheduled.has_value());
  EXPECT_EQ(ToString(scheduled->plan, Simulated(problem, scheduled->plan)),
            "B3 [0, 40)\n"
            "fetch 2 [0, 30)\n"
            "B2 [40, 80)\n"
            "B1 [80, 120)\n"
            "send 2 [80, 110)\n"
            "F1 [120, 140)\n"
            "F2 [140, 160)\n"
            "delete 2 at 160\n"
            "F3 [160, 180)\n");
}

TEST(PlanTrimmedWeightOffload, IsNeverLongerThanThePapers) {
  RandomProblems problems(7);
  int shorter = 0;
  for (int round = 0; round < 200; ++round) {
    const WeightOffloadProblem problem = problems.Next(12, 60);
    const auto trimmed = PlanTrimmedWeightOffload(problem);
    ASSERT_TRUE(trimmed.ok()) << trimmed.status();
    const WeightOffloadStep step = Simulated(problem, trimmed->scheduled.plan);
    ASSERT_EQ(step.step_time, trimmed->scheduled.step_time);
    const Nanos greedy = Planned(problem, Discount::kUse).scheduled.step_time;
    ASSERT_LE(step.step_time, greedy) << "round " << round;
    shorter += step.step_time < greedy ? 1 : 0;
  }
  EXPECT_GT(shorter, 20);
}

}  // namespace
}  // namespace siphon
