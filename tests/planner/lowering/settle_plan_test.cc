#include "planner/lowering/settle_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/lowering/lower_memory_plan.h"
#include "planner/lowering/make_groups.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Two stages under 1f1b, whose second one goes back as soon as it has gone forward: each layer's
// activations in a group.
MemoryPlan AllActivations(const PlanningProblem& problem, const GroupChoice& choice) {
  MemoryPlan plan = KeepEverything(problem.profile, problem.partition);
  for (StagePlan& stage : plan.stages) {
    for (PlannedGroup& planned : stage.groups) {
      if (planned.group.kind == GroupKind::kActivations) planned.choice = choice;
    }
  }
  return plan;
}

std::vector<Placement> PlacementsOf(const StagePlan& stage) {
  std::vector<Placement> placements;
  for (const auto& [group, choice] : stage.groups) {
    if (group.kind == GroupKind::kActivations) placements.push_back(choice.placement);
  }
  return placements;
}

TEST(SettlePlan, KeepsWhatHasNoTimeToBeAway) {
  const PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  for (const Placement placement : {Placement::kHostSwap, Placement::kRecompute}) {
    MemoryPlan plan =
        AllActivations(problem, {.placement = placement, .second_choice = Placement::kKeep});
    const auto lowered = LowerMemoryPlan(problem.schedule, plan, {});
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    SettlePlan(*lowered, problem.partition, plan);
    EXPECT_THAT(PlacementsOf(plan.stages[0]), testing::ElementsAre(placement, placement));
    EXPECT_THAT(PlacementsOf(plan.stages[1]),
                testing::ElementsAre(Placement::kKeep, Placement::kKeep));
    const auto again = LowerMemoryPlan(problem.schedule, plan, {});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, *lowered);
  }
}

TEST(SettlePlan, StepsOnTheDeviceWhereNoLayerStepsOnTheHost) {
  const PlanningProblem problem = TwoFullWorkers(Bytes(800));
  MemoryPlan plan = KeepEverything(problem.profile, problem.partition);
  for (StagePlan& stage : plan.stages) {
    stage.update = UpdatePlace::kHost;
    for (PlannedGroup& planned : stage.groups) {
      if (planned.group.kind != GroupKind::kOptimizerState) continue;
      planned.choice = {.placement = Placement::kHostSwap, .steps_on_device = true};
    }
  }
  plan.stages[1].groups.back().choice.steps_on_device = false;  // one layer's
  MemoryPlan settled = plan;
  SettlePlan(problem.schedule, problem.partition, settled);
  EXPECT_EQ(settled.stages[0].update, UpdatePlace::kDevice);
  for (const auto& [group, choice] : settled.stages[0].groups) {
    EXPECT_FALSE(choice.steps_on_device);
    const bool is_state = group.kind == GroupKind::kOptimizerState;
    EXPECT_EQ(choice.placement, is_state ? Placement::kHostSwap : Placement::kKeep);
  }
  EXPECT_EQ(settled.stages[1], plan.stages[1]);
}

}  // namespace
}  // namespace siphon
