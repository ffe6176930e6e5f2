#include "planner/lowering/lower_memory_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

PlannedGroup Group(GroupKind kind, Placement placement, int layer = 0) {
  return {.group = {.kind = kind, .layers = {layer, layer + 1}, .bytes = Bytes(8)},
          .choice = {.placement = placement}};
}

PlannedGroup Activations(Placement placement) { return Group(GroupKind::kActivations, placement); }

// All stages alike.
MemoryPlan Plan(int stages, std::vector<PlannedGroup> groups) {
  MemoryPlan plan;
  plan.stages.assign(stages, {.groups = std::move(groups)});
  return plan;
}

std::string Lowered(absl::string_view program, std::vector<PlannedGroup> groups,
                    const SwapTiming& timing = {}, DirectBackward direct = DirectBackward::kLeave) {
  const Schedule schedule = ParsedSchedule(program);
  const int stages = StageCount(schedule);
  const auto lowered = LowerMemoryPlan(schedule, Plan(stages, std::move(groups)),
                                       {.timing = std::vector<SwapTiming>(stages, timing),
                                        .direct = {static_cast<size_t>(stages), direct}});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? ToString(*lowered) : "";
}

TEST(LowerMemoryPlan, SwapsActivationsOutBehindTheirForwardAndInBeforeTheirBackward) {
  EXPECT_EQ(Lowered("0F0 0F1 0F2 0B0 0B1 0B2\n", {Activations(Placement::kHostSwap)},
                    {.actions_to_come_back = 0}),
            "0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_OUT1.0 0F1 0SWAP_OUT_END1.0 0F2 "
            "0SWAP_IN0.0 0B0 0SWAP_IN1.0 0B1 0B2\n");
}

TEST(LowerMemoryPlan, GivesCopiesMoreTimeWhenTold) {
  EXPECT_EQ(Lowered("0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n", {Activations(Placement::kPeerSwap)},
                    {.forwards_to_leave = 2, .actions_to_come_back = 1}),
            "0SWAP_OUT0.0 0F0 0SWAP_OUT1.0 0F1 0SWAP_OUT_END0.0 0SWAP_OUT2.0 0F2 "
            "0SWAP_OUT_END1.0 0SWAP_OUT_END2.0 0SWAP_IN0.0 0F3 0SWAP_IN1.0 0B0 0SWAP_IN2.0 0B1 "
            "0B2 0B3\n");
}

TEST(LowerMemoryPlan, EndsCopiesOutBeforeABackwardTakesRoomWhenTold) {
  EXPECT_EQ(Lowered("0F0 0F1 0B0 0F2 0B1 0B2\n", {Activations(Placement::kHostSwap)},
                    {.forwards_to_leave = 0, .actions_to_come_back = 0}),
            "0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_OUT1.0 0F1 0SWAP_OUT_END1.0 0SWAP_IN0.0 0B0 "
            "0SWAP_OUT2.0 0F2 0SWAP_OUT_END2.0 0SWAP_IN1.0 0B1 0SWAP_IN2.0 0B2\n");
}

// The last group leaves behind its forward and comes in before its backward; the others under them.
TEST(LowerMemoryPlan, StreamsGroupsWhenTold) {
  const auto group = [](int layer) {
    return Group(GroupKind::kActivations, Placement::kHostSwap, layer);
  };
  EXPECT_EQ(Lowered("0F0 0F1 0B0 0B1\n", {group(0), group(1), group(2)},
                    {.forwards_to_leave = 0, .groups_out_behind = 1, .groups_in_before = 1}),
            "0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_OUT0.1 0SWAP_OUT_END0.1 0SWAP_OUT0.2 0F0 "
            "0SWAP_OUT_END0.2 0SWAP_OUT1.0 0SWAP_OUT_END1.0 0SWAP_OUT1.1 0SWAP_OUT_END1.1 "
            "0SWAP_OUT1.2 0F1 0SWAP_OUT_END1.2 0SWAP_IN0.2 0B0 0SWAP_IN1.2 0B1\n");
  // Where a backward follows at once, what would leave behind its forward stays.
  EXPECT_EQ(Lowered("0F0 0B0\n", {group(0), group(1)},
                    {.forwards_to_leave = 0, .groups_out_behind = 1, .groups_in_before = 1}),
            "0SWAP_OUT0.0 0SWAP_OUT_END0.0 0F0 0B0\n");
  EXPECT_EQ(Lowered("0F0 0B0\n", {group(0)}, {.groups_out_behind = 0}),
            "0SWAP_OUT0.0 0SWAP_OUT_END0.0 0F0 0SWAP_IN0.0 0B0\n");
}

TEST(LowerMemoryPlan, KeepsWhatTheFirstBackwardNeedsWhenTold) {
  const std::vector<PlannedGroup> groups = {Activations(Placement::kHostSwap)};
  constexpr auto kFirstStay = SwapTiming::Turn::kFirstStay;
  // Without it 0 comes back before F4, 3 is gone before F4, and 4 stays.
  EXPECT_EQ(Lowered("0F0 0F1 0F2 0F3 0F4 0B0 0B1 0B2 0B3 0B4\n", groups,
                    {.forwards_to_leave = 2, .turn = kFirstStay}),
            "0F0 0SWAP_OUT1.0 0F1 0SWAP_OUT2.0 0F2 0SWAP_OUT_END1.0 0SWAP_OUT3.0 0F3 "
            "0SWAP_OUT_END2.0 0SWAP_OUT4.0 0F4 0SWAP_OUT_END3.0 0SWAP_IN1.0 0B0 0SWAP_OUT_END4.0 "
            "0SWAP_IN2.0 0B1 0SWAP_IN3.0 0B2 0SWAP_IN4.0 0B3 0B4\n");
  // 3 would have to be back before anything has used its room.
  EXPECT_EQ(Lowered("0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\n", groups, {.turn = kFirstStay}),
            "0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_OUT1.0 0F1 0SWAP_IN0.0 0B0 "
            "0SWAP_OUT_END1.0 0F2 0SWAP_IN1.0 0B1 0F3 0B2 0B3\n");
}

TEST(LowerMemoryPlan, BringsTheLastLayersBackFirst) {
  EXPECT_EQ(Lowered("0F0 0F1 0B0 0B1\n",
                    {Activations(Placement::kHostSwap), Activations(Placement::kHostSwap)}),
            "0SWAP_OUT0.0 0SWAP_OUT0.1 0F0 0SWAP_OUT_END0.0 0SWAP_OUT_END0.1 0F1 0SWAP_IN0.1 "
            "0SWAP_IN0.0 0B0 0B1\n");
}

TEST(LowerMemoryPlan, LeavesWhatNoOtherForwardComesBetween) {
  const std::string program = "0F0 0B0 0F1 0B1\n";
  EXPECT_EQ(Lowered(program, {Activations(Placement::kNvmeSwap)}), program);
  EXPECT_EQ(Lowered(program, {Activations(Placement::kRecompute)}), program);
}

TEST(LowerMemoryPlan, DropsBeforeADirectBackwardWhenTold) {
  EXPECT_EQ(
      Lowered("0F0 0B0 0F1 0B1\n", {Activations(Placement::kRecompute)}, {}, DirectBackward::kDrop),
      "0DROP0.0 0F0 0B0 0DROP1.0 0F1 0B1\n");
}

TEST(LowerMemoryPlan, DropsEveryGroupThatIsComputedAgain) {
  EXPECT_EQ(Lowered("0F0 0F1 0B1 0B0\n",
                    {Activations(Placement::kRecompute), Activations(Placement::kKeep),
                     Activations(Placement::kRecompute)}),
            "0DROP0.0 0DROP0.2 0F0 0F1 0B1 0B0\n");
}

TEST(LowerMemoryPlan, BringsSplitBackwardsWhatTheyNeedBeforeI) {
  EXPECT_EQ(Lowered("0F0 0F1 0I0 0W0 0I1 0W1\n", {Activations(Placement::kHostSwap)},
                    {.actions_to_come_back = 0}),
            "0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0F1 0SWAP_IN0.0 0I0 0W0 0I1 0W1\n");
}

TEST(LowerMemoryPlan, NeverStandsInsideACompoundCell) {
  EXPECT_EQ(Lowered("0F0 0F1 (0F2;0B0)OVERLAP_F_B 0B1 0B2\n", {Activations(Placement::kHostSwap)}),
            "0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_OUT1.0 0F1 0SWAP_OUT_END1.0 0SWAP_IN0.0 "
            "(0F2;0B0)OVERLAP_F_B 0SWAP_IN1.0 0B1 0B2\n");
}

TEST(LowerMemoryPlan, StepsStateThatIsAwayGroupByGroup) {
  const PlannedGroup away = Group(GroupKind::kOptimizerState, Placement::kHostSwap);
  EXPECT_EQ(Lowered("0F0 0B0 0STEP\n", {away, away, away}, {.groups_ahead = 0}),
            "0F0 0B0 0SWAP_IN.0 0STEP.0 0SWAP_OUT.0 0SWAP_IN.1 0STEP.1 0SWAP_OUT.1 "
            "0SWAP_OUT_END.0 0SWAP_IN.2 0STEP.2 0SWAP_OUT.2 0SWAP_OUT_END.1 0SWAP_OUT_END.2 "
            "0STEP\n");
}

TEST(LowerMemoryPlan, BringsStateInWhileTheLastBackwardRuns) {
  const PlannedGroup away = Group(GroupKind::kOptimizerState, Placement::kPeerSwap);
  EXPECT_EQ(Lowered("0F0 0B0 0STEP\n", {away}, {.actions_before_step = 1}),
            "0F0 0SWAP_IN.0 0B0 0STEP.0 0SWAP_OUT.0 0SWAP_OUT_END.0 0STEP\n");
}

// The gradient norm is all workers' together: one that is through early waits for it, and its state
// comes in meanwhile.
TEST(LowerMemoryPlan, BringsStateInWhileAWorkerWaitsForTheNorm) {
  const PlannedGroup state = Group(GroupKind::kOptimizerState, Placement::kHostSwap);
  EXPECT_EQ(Lowered("0F0 0B0 0REDUCE_GRAD 0REDUCE_NORM 0STEP\n", {state, state},
                    {.groups_ahead = 0, .groups_away_between_steps = 1, .actions_to_come_home = 0}),
            "0SWAP_OUT.1 0F0 0SWAP_OUT_END.1 0B0 0SWAP_IN.1 0SWAP_IN.0 0REDUCE_GRAD 0REDUCE_NORM "
            "0STEP.1 0STEP.0 0SWAP_OUT.0 0SWAP_OUT_END.0 0STEP\n");
  EXPECT_EQ(Lowered("0F0 0B0 0REDUCE_NORM 0STEP\n", {state}, {.actions_before_step = 1}),
            "0F0 0SWAP_IN.0 0B0 0REDUCE_NORM 0STEP.0 0SWAP_OUT.0 0SWAP_OUT_END.0 0STEP\n");
}

// Two of three groups are home between steps: the first is gone before the second forward, the
// other one before the third, and each of the last two actions before STEP begins with one's
// return.
TEST(LowerMemoryPlan, SendsStateThatIsHomeAwayInTheMiddleOfTheStep) {
  const PlannedGroup state = Group(GroupKind::kOptimizerState, Placement::kHostSwap);
  EXPECT_EQ(
      Lowered(
          "0F0 0F1 0F2 0B0 0B1 0B2 0STEP\n", {state, state, state},
          {.groups_away_between_steps = 1, .forwards_to_leave_home = 2, .actions_to_come_home = 2}),
      "0SWAP_OUT.1 0SWAP_OUT.2 0F0 0SWAP_OUT_END.1 0F1 0SWAP_OUT_END.2 0F2 0B0 0SWAP_IN.1 "
      "0B1 0SWAP_IN.2 0B2 0SWAP_IN.0 0STEP.1 0STEP.2 0STEP.0 0SWAP_OUT.0 0SWAP_OUT_END.0 "
      "0STEP\n");
  // A forward never has to wait for the first copy, and what is gone comes back.
  EXPECT_EQ(
      Lowered(
          "0F0 0B0 0STEP\n", {state},
          {.groups_away_between_steps = 0, .forwards_to_leave_home = 9, .actions_to_come_home = 9}),
      "0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0SWAP_IN.0 0B0 0STEP.0 0STEP\n");
  EXPECT_EQ(
      Lowered(
          "0F0 0B0 0STEP\n", {state},
          {.groups_away_between_steps = 0, .forwards_to_leave_home = 0, .actions_to_come_home = 0}),
      "0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0B0 0SWAP_IN.0 0STEP.0 0STEP\n");
}

// Stage 1 steps first: what comes in for that has to have room beside all that is home.
TEST(LowerMemoryPlan, BringsAllStateHomeBeforeAWorkersFirstStep) {
  const PlannedGroup state = Group(GroupKind::kOptimizerState, Placement::kHostSwap);
  EXPECT_EQ(
      Lowered("0F0 1F0 1B0 1STEP 0B0 0STEP\n", {state, state}, {.groups_away_between_steps = 1}),
      "0SWAP_OUT.1 1SWAP_OUT.1 0F0 0SWAP_OUT_END.1 1SWAP_OUT_END.1 1F0 0SWAP_IN.1 "
      "1SWAP_IN.1 1B0 1SWAP_IN.0 1STEP.1 1STEP.0 1SWAP_OUT.0 1SWAP_OUT_END.0 1STEP 0B0 "
      "0SWAP_IN.0 0STEP.1 0STEP.0 0SWAP_OUT.0 0SWAP_OUT_END.0 0STEP\n");
}

TEST(LowerMemoryPlan, KeepsParametersInFromTheirFirstUseToTheirLast) {
  EXPECT_EQ(Lowered("0F0 0B0 0STEP\n", {Group(GroupKind::kParameters, Placement::kHostSwap)}),
            "0SWAP_IN.0 0F0 0B0 0STEP 0SWAP_OUT.0 0SWAP_OUT_END.0\n");
}

TEST(LowerMemoryPlan, EndsCopiesOutOfASteppedStageBeforeTheNextBackward) {
  EXPECT_EQ(Lowered("1B0 1STEP 0B0 0STEP\n", {Group(GroupKind::kParameters, Placement::kHostSwap)},
                    {.actions_to_come_back = 0}),
            "1SWAP_IN.0 1B0 1STEP 1SWAP_OUT.0 1SWAP_OUT_END.0 0SWAP_IN.0 0B0 0STEP 0SWAP_OUT.0 "
            "0SWAP_OUT_END.0\n");
}

TEST(LowerMemoryPlan, KeepsWeightsInAsLongAsTold) {
  const std::string program = "0F0 1F0 2F0 0F1 1F1 2F1\n";
  const std::vector<PlannedGroup> groups = {Group(GroupKind::kParameters, Placement::kHostSwap)};
  EXPECT_EQ(Lowered(program, groups, {.actions_to_come_back = 0, .actions_to_stay = 3}),
            "0SWAP_IN.0 0F0 1SWAP_IN.0 1F0 2SWAP_IN.0 2F0 0F1 0DROP.0 1F1 1DROP.0 2F1 2DROP.0\n");
  EXPECT_EQ(Lowered(program, groups, {.actions_to_come_back = 0}),
            "0SWAP_IN.0 0F0 0DROP.0 1SWAP_IN.0 1F0 1DROP.0 2SWAP_IN.0 2F0 2DROP.0 0SWAP_IN.0 0F1 "
            "0DROP.0 1SWAP_IN.0 1F1 1DROP.0 2SWAP_IN.0 2F1 2DROP.0\n");
}

// Stage 0 and stage 1 on one worker, one after the other.
TEST(LowerMemoryPlan, DropsParametersWhileTheWorkerIsAtAnotherStage) {
  EXPECT_EQ(Lowered("0F0 0F1 0F2 0F3 1F0 1F1 1F2 1F3 1B3 1B2 1B1 1B0 0B3 0B2 0B1 0B0\n",
                    {Group(GroupKind::kParameters, Placement::kHostSwap)}),
            "0SWAP_IN.0 0F0 0F1 0F2 1SWAP_IN.0 0F3 0DROP.0 1F0 1F1 1F2 1F3 1B3 1B2 1B1 "
            "0SWAP_IN.0 1B0 1DROP.0 0B3 0B2 0B1 0B0 0DROP.0\n");
}

TEST(LowerMemoryPlan, SendsGradientsAwayBetweenTheirUses) {
  EXPECT_EQ(
      Lowered("0B0 1B0 1B1 1B2 1B3 0B1 1STEP 0STEP\n",
              {Group(GroupKind::kGradients, Placement::kHostSwap)}, {.actions_to_come_back = 0}),
      "0SWAP_IN.0 0B0 0SWAP_OUT.0 1SWAP_IN.0 1B0 0SWAP_OUT_END.0 1B1 1B2 1B3 0SWAP_IN.0 0B1 "
      "1STEP 1SWAP_OUT.0 0STEP 0SWAP_OUT.0 0SWAP_OUT_END.0 1SWAP_OUT_END.0\n");
}

std::string LayerByLayer(absl::string_view program, StagePlan stage) {
  MemoryPlan plan;
  plan.stages = {std::move(stage)};
  const auto lowered =
      LowerMemoryPlan(ParsedSchedule(program), plan, {.weights = {WeightResidence::kLayerByLayer}});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? ToString(*lowered) : "";
}

TEST(LowerMemoryPlan, BringsWeightsInForEachActionLayerByLayer) {
  const StagePlan stage{.groups = {Group(GroupKind::kParameters, Placement::kHostSwap, 0),
                                   Group(GroupKind::kParameters, Placement::kHostSwap, 1),
                                   Group(GroupKind::kGradients, Placement::kHostSwap, 1)}};
  EXPECT_EQ(LayerByLayer("0F0 0F1 0B0 0I1 0W1\n", stage),
            "0DROP.0 0DROP.1 0F0 0DROP.0 0DROP.1 0F1 0DROP.0 0DROP.1 0SWAP_OUT.2 0B0 "
            "0DROP.0 0DROP.1 0I1 0SWAP_OUT_END.2 0DROP.0 0DROP.1 0SWAP_OUT.2 0W1 "
            "0SWAP_OUT_END.2\n");
}

// Of two groups the one that backwards begin with, where another action stands between two of them.
TEST(LowerMemoryPlan, BringsTheFirstGradientsInAhead) {
  const std::vector<PlannedGroup> groups = {Group(GroupKind::kGradients, Placement::kHostSwap, 0),
                                            Group(GroupKind::kGradients, Placement::kHostSwap, 1)};
  const auto lowered = LowerMemoryPlan(
      ParsedSchedule("0F0 0F1 0B0 0F2 0B1 0B2\n"), Plan(1, groups),
      {.timing = {SwapTiming{.gradients_ahead = 1}}, .weights = {WeightResidence::kLayerByLayer}});
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(ToString(*lowered),
            "0F0 0SWAP_IN.1 0F1 0SWAP_OUT.0 0SWAP_OUT.1 0B0 0SWAP_OUT_END.1 0SWAP_IN.1 0F2 "
            "0SWAP_OUT_END.0 0SWAP_OUT.0 0SWAP_OUT.1 0B1 0SWAP_OUT_END.0 0SWAP_OUT_END.1 "
            "0SWAP_OUT.0 0SWAP_OUT.1 0B2 0SWAP_OUT_END.0 0SWAP_OUT_END.1\n");
}

TEST(LowerMemoryPlan, StepsALayerWithItsParametersAndGradients) {
  StagePlan stage{.groups = {Group(GroupKind::kParameters, Placement::kHostSwap, 0),
                             Group(GroupKind::kGradients, Placement::kHostSwap, 1),
                             Group(GroupKind::kOptimizerState, Placement::kKeep, 0),
                             Group(GroupKind::kOptimizerState, Placement::kHostSwap, 1)}};
  EXPECT_EQ(LayerByLayer("0B0 0STEP\n", stage),
            "0DROP.0 0SWAP_OUT.1 0B0 0SWAP_OUT_END.1 0SWAP_IN.0 0SWAP_IN.1 0SWAP_IN.3 "
            "0STEP.2 0SWAP_OUT.0 0STEP.3 0SWAP_OUT.3 0SWAP_OUT.1 0SWAP_OUT_END.0 "
            "0SWAP_OUT_END.3 0SWAP_OUT_END.1 0STEP\n");
  stage.groups.resize(2);  // no optimizer state of its own: with the stage's STEP
  EXPECT_EQ(LayerByLayer("0B0 0STEP\n", stage),
            "0DROP.0 0SWAP_OUT.1 0B0 0SWAP_OUT_END.1 0SWAP_IN.0 0SWAP_IN.1 0STEP 0SWAP_OUT.0 "
            "0SWAP_OUT.1 0SWAP_OUT_END.0 0SWAP_OUT_END.1\n");
  stage.update = UpdatePlace::kHost;  // which has them there
  EXPECT_EQ(LayerByLayer("0B0 0STEP\n", stage), "0DROP.0 0SWAP_OUT.1 0B0 0SWAP_OUT_END.1 0STEP\n");
}

TEST(LowerMemoryPlan, StepsOnTheHostGroupByGroupSoThatOneCopiesMeanwhile) {
  StagePlan stage{.groups = {Group(GroupKind::kOptimizerState, Placement::kKeep, 0),
                             Group(GroupKind::kOptimizerState, Placement::kKeep, 1)}};
  EXPECT_EQ(LayerByLayer("0B0 0STEP\n", stage), "0B0 0STEP\n");
  stage.update = UpdatePlace::kHost;
  EXPECT_EQ(LayerByLayer("0B0 0STEP\n", stage), "0B0 0STEP.0 0STEP.1 0STEP\n");
}

TEST(LowerMemoryPlan, KeepsWeightsInForACellWithTwoActionsOfTheirStage) {
  const StagePlan stage{.groups = {Group(GroupKind::kParameters, Placement::kHostSwap),
                                   Group(GroupKind::kGradients, Placement::kHostSwap)}};
  EXPECT_EQ(LayerByLayer("0F0 (0F1;0B0)OVERLAP_F_B 0B1\n", stage),
            "0DROP.0 0F0 0SWAP_IN.0 0SWAP_OUT.1 (0F1;0B0)OVERLAP_F_B 0DROP.0 0SWAP_OUT_END.1 "
            "0DROP.0 0SWAP_OUT.1 0B1 0SWAP_OUT_END.1\n");
}

// One stage.
std::string LoweredWith(absl::string_view program, std::vector<PlannedGroup> groups,
                        const LowerMemoryOptions& options) {
  const auto lowered =
      LowerMemoryPlan(ParsedSchedule(program), Plan(1, std::move(groups)), options);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? ToString(*lowered) : "";
}

PlannedGroup Recomputed(int layer) {
  return Group(GroupKind::kActivations, Placement::kRecompute, layer);
}

TEST(LowerMemoryPlan, ComputesAgainBeforeTheBackwardWhenTold) {
  constexpr int kWithin = LowerMemoryOptions::kInBackward;
  const std::vector<PlannedGroup> groups = {Recomputed(0), Recomputed(1), Recomputed(2)};
  EXPECT_EQ(LoweredWith("0F0 0F1 0B0 0B1\n", groups, {.made_ahead = {kWithin, 0, 0}}),
            "0DROP0.0 0DROP0.1 0DROP0.2 0F0 0DROP1.0 0DROP1.1 0DROP1.2 0F1 "
            "0RECOMPUTE0.2 0RECOMPUTE0.1 0B0 0RECOMPUTE1.2 0RECOMPUTE1.1 0B1\n");
  EXPECT_EQ(LoweredWith("0F0 0F1 0B0 0B1\n", groups, {.made_ahead = {kWithin, kWithin, 1}}),
            "0DROP0.0 0DROP0.1 0DROP0.2 0F0 0RECOMPUTE0.2 0DROP1.0 0DROP1.1 0DROP1.2 0F1 "
            "0RECOMPUTE1.2 0B0 0B1\n");
}

// Nothing is waited for there; and nobody knows whether the weights are there.
TEST(LowerMemoryPlan, LeavesDirectBackwardsAndWeightsThatAreAwayToTheBackward) {
  EXPECT_EQ(LoweredWith("0F0 0B0 0F1 0B1\n", {Recomputed(0)},
                        {.direct = {DirectBackward::kDrop}, .made_ahead = {0}}),
            "0DROP0.0 0F0 0B0 0DROP1.0 0F1 0B1\n");
  EXPECT_EQ(LoweredWith("0F0 0F1 0B0 0B1\n",
                        {Recomputed(0), Group(GroupKind::kParameters, Placement::kHostSwap)},
                        {.weights = {WeightResidence::kLayerByLayer}, .made_ahead = {0}}),
            "0DROP0.0 0DROP.1 0F0 0DROP1.0 0DROP.1 0F1 0DROP.1 0B0 0DROP.1 0B1\n");
}

TEST(LowerMemoryPlan, LetsAShareOfTheMicrobatchesGo) {
  const std::vector<PlannedGroup> groups = {
      Recomputed(0), Group(GroupKind::kActivations, Placement::kHostSwap, 1)};
  EXPECT_EQ(LoweredWith("0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n", groups, {.shares = {4, 2}}),
            "0DROP0.0 0SWAP_OUT0.1 0F0 0SWAP_OUT_END0.1 0F1 0DROP2.0 0F2 0SWAP_IN0.1 0F3 0B0 0B1 "
            "0B2 0B3\n");
  int went = 0;
  for (int microbatch = 0; microbatch < 16; ++microbatch) {
    went += Goes(MicrobatchId(microbatch), 3) ? 1 : 0;
    EXPECT_TRUE(Goes(MicrobatchId(microbatch), LowerMemoryOptions::kShares));
  }
  EXPECT_EQ(went, 6);
}

TEST(LowerMemoryPlan, TimesOptimizerStateAtHomeGroupByGroup) {
  const std::vector<PlannedGroup> groups = {
      Group(GroupKind::kOptimizerState, Placement::kHostSwap, 0),
      Group(GroupKind::kOptimizerState, Placement::kHostSwap, 1),
      Group(GroupKind::kOptimizerState, Placement::kHostSwap, 2)};
  EXPECT_EQ(LoweredWith("0F0 0F1 0F2 0B0 0B1 0B2 0STEP\n", groups,
                        {.timing = {{.groups_away_between_steps = 0}},
                         .state_times = {{.gone = {1, 2}, .back = {2, 0}}}}),
            "0SWAP_OUT.0 0SWAP_OUT.1 0SWAP_OUT.2 0F0 0SWAP_OUT_END.0 0F1 0SWAP_OUT_END.1 "
            "0SWAP_OUT_END.2 0F2 0B0 0SWAP_IN.0 0B1 0B2 0SWAP_IN.1 0SWAP_IN.2 0STEP.0 0STEP.1 "
            "0STEP.2 0STEP\n");
}

TEST(LowerMemoryPlan, BringsOptimizerStateInGroupByGroup) {
  const std::vector<PlannedGroup> groups = {
      Group(GroupKind::kOptimizerState, Placement::kHostSwap, 0),
      Group(GroupKind::kOptimizerState, Placement::kHostSwap, 1),
      Group(GroupKind::kOptimizerState, Placement::kHostSwap, 2),
      Group(GroupKind::kOptimizerState, Placement::kHostSwap, 3)};
  EXPECT_EQ(LoweredWith("0F0 0F1 0F2 0B0 0B1 0B2 0STEP\n", groups,
                        {.timing = {{.actions_before_step = 5, .groups_ahead = 2}},
                         .state_times = {{.in = {3, 1}}}}),
            "0F0 0F1 0F2 0SWAP_IN.0 0B0 0B1 0SWAP_IN.1 0SWAP_IN.2 0B2 0STEP.0 0SWAP_OUT.0 "
            "0SWAP_IN.3 0STEP.1 0SWAP_OUT.1 0SWAP_OUT_END.0 0STEP.2 0SWAP_OUT.2 0SWAP_OUT_END.1 "
            "0STEP.3 0SWAP_OUT.3 0SWAP_OUT_END.2 0SWAP_OUT_END.3 0STEP\n");
}

TEST(LowerMemoryPlan, RefusesOptionsOfOtherLayers) {
  const MemoryPlan plan = Plan(1, {Recomputed(0), Recomputed(1)});
  const Schedule schedule = ParsedSchedule("0F0 0B0\n");
  EXPECT_EQ(LowerMemoryPlan(schedule, plan, {.made_ahead = {0}}).status().ToString(),
            "INVALID_ARGUMENT: the memory plan has activations of layer 1, but says of 1 layers "
            "where they are computed again");
  EXPECT_EQ(LowerMemoryPlan(schedule, plan, {.shares = {8}}).status().ToString(),
            "INVALID_ARGUMENT: the memory plan has activations of layer 1, but says of 1 layers "
            "of how many microbatches they go");
  EXPECT_EQ(LowerMemoryPlan(schedule, plan, {.state_times = {{}, {}}}).status().ToString(),
            "INVALID_ARGUMENT: the memory plan has times of optimizer state for 2 stages, but the "
            "schedule has 1");
}

TEST(LowerMemoryPlan, RefusesWhatDoesNotBelongTogether) {
  const Schedule schedule = ParsedSchedule("0F0 0B0\n");
  EXPECT_EQ(LowerMemoryPlan(schedule, {}, {}).status().ToString(),
            "INVALID_ARGUMENT: the memory plan has groups for 0 stages, but the schedule has 1");
  EXPECT_EQ(LowerMemoryPlan(schedule, Plan(1, {}), {.timing = {{}, {}}}).status().ToString(),
            "INVALID_ARGUMENT: the memory plan has times of copies for 2 stages, but the schedule "
            "has 1");
  EXPECT_EQ(LowerMemoryPlan(schedule, Plan(1, {}), {.weights = {{}, {}}}).status().ToString(),
            "INVALID_ARGUMENT: the memory plan has residence of weights for 2 stages, but the "
            "schedule has 1");
  const MemoryPlan lost = Plan(1, {Group(GroupKind::kGradients, Placement::kRecompute)});
  EXPECT_EQ(LowerMemoryPlan(schedule, lost, {}).status().ToString(),
            "INVALID_ARGUMENT: gradients of stage 0 cannot be computed again: only activations "
            "take recompute");
}

TEST(LowerMemoryPlan, RefusesASchedulesOwnMemoryActionsAndUpdatesWithoutState) {
  EXPECT_EQ(
      LowerMemoryPlan(ParsedSchedule("0DROP0 0F0 0B0\n"), Plan(1, {}), {}).status().ToString(),
      "FAILED_PRECONDITION: a memory plan is for a schedule without memory actions, but "
      "worker 0 has 0DROP0");
  const MemoryPlan away = Plan(1, {Group(GroupKind::kOptimizerState, Placement::kHostSwap)});
  EXPECT_EQ(LowerMemoryPlan(ParsedSchedule("0F0 0B0 0UPDATE0\n"), away, {}).status().ToString(),
            "FAILED_PRECONDITION: optimizer_state of stage 0 cannot be away: worker 0 has "
            "0UPDATE0, which needs them in the middle of the step");
}

}  // namespace
}  // namespace siphon
