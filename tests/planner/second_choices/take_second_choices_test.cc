#include "planner/second_choices/take_second_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "planner/steps_on_host.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/validate_schedule.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

using testing::HasSubstr;

// Group 0 with device 1, to be computed again if need be, group 1 with devices 1 and 2, to go to
// the host, group 2 with the host, and no other way.
FollowedPlan ThreeGroups() {
  FollowedPlan plan;
  plan.memory.stages.resize(1);
  std::vector<PlannedGroup>& groups = plan.memory.stages[0].groups;
  groups.push_back({{.layers = {0, 1}, .bytes = Bytes(10)},
                    {Placement::kPeerSwap, {{DeviceId(1), Bytes(10)}}, Placement::kRecompute}});
  groups.push_back({{.layers = {1, 2}, .bytes = Bytes(20)},
                    {Placement::kPeerSwap,
                     {{DeviceId(1), Bytes(15)}, {DeviceId(2), Bytes(5)}},
                     Placement::kHostSwap}});
  groups.push_back({{.layers = {2, 3}, .bytes = Bytes(30)}, {Placement::kHostSwap}});
  plan.schedule = ParsedSchedule(
      "0SWAP_OUT0.0 0SWAP_OUT0.1 0SWAP_OUT0.2 0F0 0F1 0SWAP_OUT_END0.0 0SWAP_OUT_END0.1 "
      "0SWAP_OUT_END0.2 0B1 0SWAP_IN0.2 0SWAP_IN0.1 0SWAP_IN0.0 0B0 0STEP\n");
  return plan;
}

ConcernsGroup With(DeviceId lender) {
  return [lender](StageId, const PlannedGroup& planned) {
    const auto& stripes = planned.choice.stripes;
    return std::any_of(stripes.begin(), stripes.end(),
                       [&](const Stripe& stripe) { return stripe.lender == lender; });
  };
}

TEST(TakeSecondChoices, DropsWhatIsComputedAgainAndLeavesTheActionsOfTheRest) {
  const auto taken = TakeSecondChoices(ThreeGroups(), With(DeviceId(1)));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(ToString(taken->schedule),
            "0DROP0.0 0SWAP_OUT0.1 0SWAP_OUT0.2 0F0 0F1 0SWAP_OUT_END0.1 0SWAP_OUT_END0.2 0B1 "
            "0SWAP_IN0.2 0SWAP_IN0.1 0B0 0STEP\n");
  FollowedPlan expected = ThreeGroups();
  expected.memory.stages[0].groups[0].choice = {.placement = Placement::kRecompute};
  expected.memory.stages[0].groups[1].choice = {.placement = Placement::kHostSwap};
  EXPECT_EQ(taken->memory, expected.memory);
  EXPECT_TRUE(ValidateSchedule(taken->schedule, SchedulePurpose::kTraining, taken->memory).ok());
}

TEST(TakeSecondChoices, MovesOnlyWhatIsConcerned) {
  const auto taken = TakeSecondChoices(ThreeGroups(), With(DeviceId(2)));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->schedule, ThreeGroups().schedule);
  EXPECT_EQ(taken->memory.stages[0].groups[0], ThreeGroups().memory.stages[0].groups[0]);
  EXPECT_EQ(taken->memory.stages[0].groups[1].choice.placement, Placement::kHostSwap);
  const auto nobody = TakeSecondChoices(ThreeGroups(), With(DeviceId(3)));
  ASSERT_TRUE(nobody.ok()) << nobody.status();
  EXPECT_EQ(*nobody, ThreeGroups());
}

// State that a lender had, in a stage whose other state the host steps: the host has it now, and it
// steps where it did. What the host steps goes on to step there.
TEST(TakeSecondChoices, LeavesStepsWhereTheyAre) {
  FollowedPlan plan;
  StagePlan& stage = plan.memory.stages.emplace_back();
  stage.update = UpdatePlace::kHost;
  stage.groups.push_back(
      {{GroupKind::kOptimizerState, {0, 1}, Bytes(10)},
       {Placement::kPeerSwap, {{DeviceId(1), Bytes(10)}}, Placement::kHostSwap}});
  stage.groups.push_back(
      {{GroupKind::kOptimizerState, {1, 2}, Bytes(10)}, {.placement = Placement::kHostSwap}});
  plan.schedule =
      ParsedSchedule("0F0 0B0 0SWAP_IN.0 0STEP.1 0STEP.0 0SWAP_OUT.0 0SWAP_OUT_END.0 0STEP\n");
  const auto taken = TakeSecondChoices(plan, With(DeviceId(1)));
  ASSERT_TRUE(taken.ok()) << taken.status();
  const StagePlan& now = taken->memory.stages[0];
  EXPECT_EQ(now.groups[0].choice.placement, Placement::kHostSwap);
  EXPECT_FALSE(StepsOnHost(now, 0));
  EXPECT_TRUE(StepsOnHost(now, 1));
  EXPECT_TRUE(ValidateSchedule(taken->schedule, SchedulePurpose::kTraining, taken->memory).ok());
}

// Layer 0 steps on the host, layer 1 on the device from the host's memory.
TEST(StaysForHostStep, HoldsForWhatTheHostWorksOn) {
  StagePlan stage{.update = UpdatePlace::kHost};
  stage.groups.push_back({{GroupKind::kOptimizerState, {0, 1}}, {Placement::kHostSwap}});
  stage.groups.push_back({{GroupKind::kOptimizerState, {1, 2}},
                          {.placement = Placement::kHostSwap, .steps_on_device = true}});
  const auto stays = [&](GroupKind kind, const StageRange& layers, Placement placement) {
    return StaysForHostStep(stage, {{kind, layers}, {placement}});
  };
  EXPECT_TRUE(StaysForHostStep(stage, stage.groups[0]));
  EXPECT_FALSE(StaysForHostStep(stage, stage.groups[1]));
  for (const GroupKind kind : {GroupKind::kParameters, GroupKind::kGradients}) {
    EXPECT_TRUE(stays(kind, {0, 1}, Placement::kHostSwap));
    EXPECT_TRUE(stays(kind, {0, 2}, Placement::kHostSwap));
    EXPECT_FALSE(stays(kind, {1, 2}, Placement::kHostSwap));
    EXPECT_FALSE(stays(kind, {0, 1}, Placement::kNvmeSwap));
  }
  EXPECT_FALSE(stays(GroupKind::kActivations, {0, 1}, Placement::kHostSwap));
  stage.update = UpdatePlace::kDevice;
  EXPECT_FALSE(StaysForHostStep(stage, stage.groups[0]));
}

// Only what its room is made of changes, of which the plan says nothing.
TEST(TakeSecondChoices, LeavesWhatTheHostWorksOnWhereItIs) {
  FollowedPlan plan;
  StagePlan& stage = plan.memory.stages.emplace_back();
  stage.update = UpdatePlace::kHost;
  for (const GroupKind kind : {GroupKind::kOptimizerState, GroupKind::kParameters}) {
    stage.groups.push_back({{kind, {0, 1}, Bytes(10)},
                            {.placement = Placement::kHostSwap,  //
                             .second_choice = Placement::kNvmeSwap}});
  }
  const auto all = [](StageId, const PlannedGroup&) { return true; };
  const auto taken = TakeSecondChoices(plan, all);
  ASSERT_TRUE(taken.ok()) << taken.status();
  for (PlannedGroup& planned : stage.groups) planned.choice.second_choice = Placement::kKeep;
  EXPECT_EQ(*taken, plan);
  // To anywhere else it cannot go.
  stage.groups[1].choice.second_choice = Placement::kPeerSwap;
  const auto refused = TakeSecondChoices(plan, [](StageId, const PlannedGroup& planned) {
    return planned.group.kind == GroupKind::kParameters;
  });
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("parameters of stage 0, group 1, are with host_swap, and the plan has no "
                        "second choice"));
}

TEST(TakeSecondChoices, NamesAGroupThatHasNone) {
  const auto taken = TakeSecondChoices(ThreeGroups(), [](StageId, const PlannedGroup& planned) {
    return planned.choice.placement == Placement::kHostSwap;
  });
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(taken.status().message()),
              HasSubstr("activations of stage 0, group 2, are with host_swap, and the plan has no "
                        "second choice"));
}

// Of every strategy's plan, with whatever schedule: the same program of the actions that compute
// and send, and one that the validator accepts.
TEST(TakeSecondChoices, OfPlansAreProgramsThatRun) {
  int taken_plans = 0;
  for (const char* name : {"1f1b", "gpipe", "zb_h1", "interleaved_1f1b"}) {
    for (const MemoryStrategy& strategy : MemoryStrategies()) {
      SCOPED_TRACE(std::string(name) + ", " + std::string(strategy.name));
      PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                           .input_backward = Nanos(1000),
                                           .weight_backward = Nanos(1000),
                                           .boundary = Bytes(1),
                                           .saved = {{"all", Bytes(10)}}},
                                          8, LoweredSchedule(name, 2, 4), TwoLinkedDevices());
      problem.granule = Bytes(1);
      SetCapacity(problem, Bytes(140));
      const auto step = strategy.plan(problem);
      if (!step.ok()) continue;
      for (const Placement from : {Placement::kPeerSwap, Placement::kHostSwap}) {
        const auto leaves = [&](StageId, const PlannedGroup& planned) {
          return planned.choice.placement == from &&
                 planned.choice.second_choice != Placement::kKeep;
        };
        const auto taken = TakeSecondChoices({step->memory, step->schedule}, leaves);
        ASSERT_TRUE(taken.ok()) << taken.status();
        if (taken->memory == step->memory) continue;
        ++taken_plans;
        const absl::Status valid =
            ValidateSchedule(taken->schedule, SchedulePurpose::kTraining, taken->memory);
        EXPECT_TRUE(valid.ok()) << valid;
        for (size_t worker = 0; worker < step->schedule.programs.size(); ++worker) {
          const auto without_memory = [](std::vector<Action> program) {
            std::erase_if(program, [](const Action& action) { return IsMemory(action.kind); });
            return program;
          };
          EXPECT_EQ(without_memory(taken->schedule.programs[worker]),
                    without_memory(step->schedule.programs[worker]));
        }
      }
    }
  }
  EXPECT_GT(taken_plans, 5);
}

}  // namespace
}  // namespace siphon
