#include "planner/check_group_residency.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

PlannedGroup Group(GroupKind kind, StageRange layers, Placement placement) {
  return {{.kind = kind, .layers = layers, .bytes = Bytes(1)}, {.placement = placement}};
}

// Stage 0 of three layers: activations on the host (0), recomputed (1) and kept (2); then what is
// there once, of all layers, on the host: parameters (3), gradients (4), optimizer state (5).
MemoryPlan OneOfEach() {
  const StageRange all{0, 3};
  MemoryPlan plan;
  plan.stages = {{.groups = {Group(GroupKind::kActivations, {0, 1}, Placement::kHostSwap),
                             Group(GroupKind::kActivations, {1, 2}, Placement::kRecompute),
                             Group(GroupKind::kActivations, {2, 3}, Placement::kKeep),
                             Group(GroupKind::kParameters, all, Placement::kHostSwap),
                             Group(GroupKind::kGradients, all, Placement::kHostSwap),
                             Group(GroupKind::kOptimizerState, all, Placement::kHostSwap)}}};
  return plan;
}

// The same with activations only.
MemoryPlan Activations() {
  MemoryPlan plan = OneOfEach();
  plan.stages[0].groups.resize(3);
  return plan;
}

std::string Residency(const MemoryPlan& plan, absl::string_view text) {
  const absl::Status status = CheckGroupResidency(ParsedSchedule(text), plan);
  return status.ok() ? "resident" : std::string(status.message());
}

TEST(CheckGroupResidency, FollowsActivationsOutAndBackIn) {
  const MemoryPlan plan = Activations();
  EXPECT_EQ(Residency(plan, "0F0 0F1 0B1 0B0"), "resident");
  EXPECT_EQ(Residency(plan, "0SWAP_OUT0.0 0DROP0.1 0F0 0SWAP_OUT_END0.0 0F1 0SWAP_IN0.0 0B0 0B1"),
            "resident");
  EXPECT_EQ(Residency(plan, "0F0 0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0SWAP_IN_END0.0 0B0"),
            "resident");
  EXPECT_EQ(Residency(plan, "0DROP0.1 0F0 0RECOMPUTE0.1 0I0 0W0"), "resident");
  // Out under its F, in under its B or I.
  EXPECT_EQ(Residency(plan, "0SWAP_OUT0.0 0SWAP_OUT_END0.0 0F0 0B0"), "resident");
  EXPECT_EQ(Residency(plan, "0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0I0 0W0"), "resident");
  EXPECT_EQ(Residency(plan, "0SWAP_OUT0.0 0SWAP_OUT_END0.0 0F0 0SWAP_IN0.0 0B0"), "resident");
  EXPECT_EQ(Residency(plan, "0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0I0 0W0"), "resident");
}

TEST(CheckGroupResidency, NamesTheUseOfActivationsThatAreOnTheirWayOut) {
  EXPECT_EQ(Residency(Activations(), "0SWAP_OUT0.0 0F0 0B0"),
            "worker 0 has 0B0, which needs group 0 of stage 0 (activations of layer 0) of "
            "microbatch 0 resident or on its way in or dropped or away, but it is on its way out "
            "since 0F0\n"
            "worker 0: 0SWAP_OUT0.0 0F0 0B0 <-- here");
}

TEST(CheckGroupResidency, NamesMovesThatMakeNoSense) {
  const MemoryPlan plan = Activations();
  EXPECT_EQ(Residency(plan, "0F0 0SWAP_IN0.0 0B0"),
            "worker 0 has 0SWAP_IN0.0, which needs group 0 of stage 0 (activations of layer 0) of "
            "microbatch 0 away, but it is resident since 0F0\n"
            "worker 0: 0F0 0SWAP_IN0.0 <-- here 0B0");
  EXPECT_EQ(Residency(plan, "0F0 0I0 0SWAP_OUT0.0 0W0"),
            "worker 0 has 0SWAP_OUT0.0, which needs group 0 of stage 0 (activations of layer 0) "
            "of microbatch 0 not made yet or resident, but it is kept for its W since 0I0\n"
            "worker 0: 0F0 0I0 0SWAP_OUT0.0 <-- here 0W0");
  EXPECT_EQ(Residency(plan, "0F0 0SWAP_OUT0.0"),
            "worker 0 has 0SWAP_OUT0.0, but at the end of the program group 0 of stage 0 "
            "(activations of layer 0) of microbatch 0 is on its way out, and nothing has used it\n"
            "worker 0: 0F0 0SWAP_OUT0.0 <-- here");
}

// A step with all three kinds that are there once.
constexpr char kStaticGroups[] =
    "0SWAP_IN.3 0F0 0DROP.3 0SWAP_IN.3 0SWAP_IN.4 0SWAP_IN_END.3 0B0 0SWAP_IN.5 0STEP "
    "0SWAP_OUT.3 0SWAP_OUT.4 0SWAP_OUT.5 0SWAP_OUT_END.3 0SWAP_OUT_END.4 0SWAP_OUT_END.5";

TEST(CheckGroupResidency, FollowsGroupsThatBelongToNoMicrobatch) {
  EXPECT_EQ(Residency(OneOfEach(), kStaticGroups), "resident");
  EXPECT_EQ(Residency(OneOfEach(), "0F0 0B0"),
            "worker 0 has 0F0, which needs group 3 of stage 0 (parameters of layers 0 to 2) "
            "resident or on its way in, but it is away\n"
            "worker 0: 0F0 <-- here 0B0");
  EXPECT_EQ(Residency(OneOfEach(), "0SWAP_IN.3 0F0 0B0"),
            "worker 0 has 0B0, which needs group 4 of stage 0 (gradients of layers 0 to 2) "
            "resident or on its way in, but it is away\n"
            "worker 0: 0SWAP_IN.3 0F0 0B0 <-- here");
  EXPECT_EQ(Residency(OneOfEach(), "0SWAP_IN.3 0SWAP_OUT.3 0F0 0B0"),
            "worker 0 has 0SWAP_OUT.3, which needs group 3 of stage 0 (parameters of layers 0 to "
            "2) resident, but it is on its way in since 0SWAP_IN.3\n"
            "worker 0: 0SWAP_IN.3 0SWAP_OUT.3 <-- here 0F0 0B0");
  EXPECT_EQ(Residency(OneOfEach(), "0SWAP_IN.3 0F0"),
            "worker 0 has 0SWAP_IN.3, but at the end of the program group 3 of stage 0 "
            "(parameters of layers 0 to 2) is resident; the next step looks for it away\n"
            "worker 0: 0SWAP_IN.3 <-- here 0F0");
}

// What leaves first was there before, and is there again at the end.
TEST(CheckGroupResidency, FollowsOptimizerStateThatIsHomeBetweenSteps) {
  MemoryPlan plan;
  plan.stages = {{.groups = {Group(GroupKind::kOptimizerState, {0, 2}, Placement::kHostSwap),
                             Group(GroupKind::kOptimizerState, {2, 3}, Placement::kHostSwap)}}};
  constexpr char kHome[] = "0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0B0 0SWAP_IN.0 0STEP.0 ";
  EXPECT_EQ(Residency(plan, std::string(kHome) + "0SWAP_IN.1 0STEP 0SWAP_OUT.1 0SWAP_OUT_END.1"),
            "resident");
  EXPECT_EQ(Residency(plan,
                      "0SWAP_OUT.0 0SWAP_OUT.1 0F0 0SWAP_OUT_END.0 0SWAP_OUT_END.1 0B0 "
                      "0SWAP_IN.0 0SWAP_IN.1 0STEP"),
            "resident");
  // Never away between steps, nor on its way.
  EXPECT_EQ(Residency(plan, "0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0B0"),
            "worker 0 has 0SWAP_OUT_END.0, but at the end of the program group 0 of stage 0 "
            "(optimizer_state of layers 0 to 1) is away; the next step looks for it resident\n"
            "worker 0: 0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 <-- here 0B0");
  EXPECT_EQ(Residency(plan, "0SWAP_OUT.0 0F0 0B0 0SWAP_OUT_END.0 0SWAP_IN.0"),
            "worker 0 has 0SWAP_IN.0, but at the end of the program group 0 of stage 0 "
            "(optimizer_state of layers 0 to 1) is on its way in; the next step looks for it "
            "resident\n"
            "worker 0: 0SWAP_OUT.0 0F0 0B0 0SWAP_OUT_END.0 0SWAP_IN.0 <-- here");
  // Since the step before it has no copy elsewhere.
  EXPECT_EQ(Residency(plan, "0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0B0 0SWAP_IN.0 0STEP.0 0DROP.0"),
            "worker 0 has 0DROP.0, but group 0 of stage 0 (optimizer_state of layers 0 to 1) has "
            "changed since it came in: it has to go by SWAP_OUT\n"
            "worker 0: 0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0B0 0SWAP_IN.0 0STEP.0 0DROP.0 <-- here");
  // Which one it is the first action says.
  EXPECT_EQ(Residency(plan, "0DROP.0 0F0 0B0"),
            "worker 0 has 0DROP.0, which needs group 0 of stage 0 (optimizer_state of layers 0 to "
            "1) resident, but it is away\n"
            "worker 0: 0DROP.0 <-- here 0F0 0B0");
}

// The same action means another thing where a backward has gradients layer by layer.
TEST(CheckGroupResidency, GradientsAreNeverHomeBetweenSteps) {
  MemoryPlan plan;
  plan.stages = {{.groups = {Group(GroupKind::kGradients, {0, 3}, Placement::kHostSwap)}}};
  EXPECT_EQ(Residency(plan, "0F0 0SWAP_OUT.0 0B0 0SWAP_OUT_END.0"), "resident");
}

// Two versions of one stage's weights are needed behind their UPDATEs: microbatches 1 and 2 have
// gone forward before UPDATE0. Group 0 is on the host, group 1 kept.
MemoryPlan Versions() {
  MemoryPlan plan;
  plan.stages = {{.groups = {Group(GroupKind::kWeightVersions, {0, 1}, Placement::kHostSwap),
                             Group(GroupKind::kWeightVersions, {1, 2}, Placement::kKeep)}}};
  return plan;
}

TEST(CheckGroupResidency, FollowsWeightVersionsFromBeforeTheirUpdateToTheirLastUse) {
  const MemoryPlan plan = Versions();
  EXPECT_EQ(Residency(plan, "0F0 0F1 0B0 0UPDATE0 0B1 0UPDATE1"), "resident");
  EXPECT_EQ(
      Residency(plan,
                "0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0B0 0UPDATE0 0SWAP_IN0.0 0B1 0UPDATE1"),
      "resident");
  EXPECT_EQ(Residency(plan,
                      "0F0 0SWAP_OUT0.0 0F1 0B0 0UPDATE0 0SWAP_OUT_END0.0 0F2 0SWAP_IN0.0 "
                      "0SWAP_IN_END0.0 0B1 0UPDATE1 0B2 0UPDATE2"),
            "resident");
  EXPECT_EQ(Residency(plan, "0F0 0F1 0B0 0UPDATE0 0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B1"),
            "resident");
}

TEST(CheckGroupResidency, NamesTheUseOfAWeightVersionThatIsAway) {
  EXPECT_EQ(Residency(Versions(), "0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0B0 0UPDATE0 0B1"),
            "worker 0 has 0B1, which needs group 0 of stage 0 (weight_versions of layer 0) before "
            "the UPDATE of microbatch 0 resident or on its way in, but it is away since "
            "0SWAP_OUT_END0.0\n"
            "worker 0: 0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0B0 0UPDATE0 0B1 <-- here");
  // The parameters are that version until the UPDATE.
  EXPECT_EQ(
      Residency(Versions(), "0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0 0UPDATE0 0B1"),
      "worker 0 has 0SWAP_IN0.0, but group 0 of stage 0 (weight_versions of layer 0) before "
      "the UPDATE of microbatch 0 is that of the parameters until 0UPDATE0\n"
      "worker 0: 0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0SWAP_IN0.0 <-- here 0B0 0UPDATE0 0B1");
}

TEST(CheckGroupResidency, NamesMovesOfVersionsThatAreNotThere) {
  const MemoryPlan plan = Versions();
  EXPECT_EQ(Residency(plan, "0F0 0B0 0SWAP_OUT0.0 0UPDATE0 0F1 0B1"),
            "worker 0 has 0SWAP_OUT0.0, but group 0 of stage 0 (weight_versions of layer 0) before "
            "the UPDATE of microbatch 0 is no stash: nothing goes by it behind an UPDATE of that "
            "microbatch\n"
            "worker 0: 0F0 0B0 0SWAP_OUT0.0 <-- here 0UPDATE0 0F1 0B1");
  EXPECT_EQ(Residency(plan, "0F0 0F1 0B0 0SWAP_OUT1.0 0UPDATE0 0F2 0B1 0UPDATE1 0B2"),
            "worker 0 has 0SWAP_OUT1.0, but group 0 of stage 0 (weight_versions of layer 0) before "
            "the UPDATE of microbatch 1 is made by 0UPDATE0\n"
            "worker 0: 0F0 0F1 0B0 0SWAP_OUT1.0 <-- here 0UPDATE0 0F2 0B1 0UPDATE1 0B2");
  EXPECT_EQ(Residency(plan, "0F0 0F1 0B0 0UPDATE0 0B1 0SWAP_OUT0.0"),
            "worker 0 has 0SWAP_OUT0.0, which needs group 0 of stage 0 (weight_versions of layer "
            "0) before the UPDATE of microbatch 0 not made yet or resident, but it is used up "
            "since 0B1\n"
            "worker 0: 0F0 0F1 0B0 0UPDATE0 0B1 0SWAP_OUT0.0 <-- here");
  EXPECT_EQ(Residency(plan, "0F0 0F1 0B0 0UPDATE0 0DROP0.0 0B1"),
            "worker 0 has 0DROP0.0, but group 0 of stage 0 (weight_versions of layer 0) before the "
            "UPDATE of microbatch 0 never changes and has to go by SWAP_OUT\n"
            "worker 0: 0F0 0F1 0B0 0UPDATE0 0DROP0.0 <-- here 0B1");
  EXPECT_EQ(Residency(plan, "0F0 0F1 0SWAP_OUT.0 0B0 0UPDATE0 0B1"),
            "worker 0 has 0SWAP_OUT.0, but group 0 of stage 0 (weight_versions of layer 0) is "
            "there once an UPDATE: name its microbatch\n"
            "worker 0: 0F0 0F1 0SWAP_OUT.0 <-- here 0B0 0UPDATE0 0B1");
  EXPECT_EQ(Residency(plan, "0F0 0F1 0SWAP_OUT0.1 0B0 0UPDATE0 0B1"),
            "worker 0 has 0SWAP_OUT0.1, but group 1 of stage 0 (weight_versions of layer 1) before "
            "the UPDATE of microbatch 0 is planned as keep\n"
            "worker 0: 0F0 0F1 0SWAP_OUT0.1 <-- here 0B0 0UPDATE0 0B1");
}

TEST(CheckGroupResidency, RefusesVersionsOfParametersThatMove) {
  MemoryPlan plan = Versions();
  plan.stages[0].groups[1] = Group(GroupKind::kParameters, {0, 2}, Placement::kHostSwap);
  EXPECT_EQ(Residency(plan, "0SWAP_IN.1 0SWAP_OUT0.0 0F0 0F1 0B0 0UPDATE0 0B1"),
            "worker 0 has 0SWAP_OUT0.0, but the memory plan sends group 1 of stage 0 (parameters "
            "of layers 0 to 1) away, of which it is a version\n"
            "worker 0: 0SWAP_IN.1 0SWAP_OUT0.0 <-- here 0F0 0F1 0B0 0UPDATE0 0B1");
}

// Computing activations again needs the weights that they were computed with.
TEST(CheckGroupResidency, ComputesAgainByTheVersionOfTheMicrobatch) {
  MemoryPlan plan = Versions();
  plan.stages[0].groups[1] = Group(GroupKind::kActivations, {0, 1}, Placement::kRecompute);
  EXPECT_EQ(Residency(plan,
                      "0SWAP_OUT0.0 0F0 0DROP1.1 0F1 0SWAP_OUT_END0.0 0B0 0UPDATE0 0SWAP_IN0.0 "
                      "0RECOMPUTE1.1 0B1"),
            "resident");
  EXPECT_EQ(Residency(plan,
                      "0SWAP_OUT0.0 0F0 0DROP1.1 0F1 0SWAP_OUT_END0.0 0B0 0UPDATE0 0RECOMPUTE1.1 "
                      "0SWAP_IN0.0 0B1"),
            "worker 0 has 0RECOMPUTE1.1, which needs group 0 of stage 0 (weight_versions of layer "
            "0) before the UPDATE of microbatch 0 resident or on its way in, but it is away since "
            "0SWAP_OUT_END0.0\n"
            "worker 0: 0SWAP_OUT0.0 0F0 0DROP1.1 0F1 0SWAP_OUT_END0.0 0B0 0UPDATE0 0RECOMPUTE1.1 "
            "<-- here 0SWAP_IN0.0 0B1");
}

// Parameters and gradients of each of two layers: groups 0, 1 and 2, 3; activations of both (4).
MemoryPlan LayerByLayer(Placement activations) {
  MemoryPlan plan;
  plan.stages = {{.groups = {Group(GroupKind::kParameters, {0, 1}, Placement::kHostSwap),
                             Group(GroupKind::kParameters, {1, 2}, Placement::kHostSwap),
                             Group(GroupKind::kGradients, {0, 1}, Placement::kHostSwap),
                             Group(GroupKind::kGradients, {1, 2}, Placement::kHostSwap),
                             Group(GroupKind::kActivations, {0, 2}, activations)}}};
  return plan;
}

TEST(CheckGroupResidency, FollowsWhatAnActionHasOnlyWhileItIsAtItsLayers) {
  const MemoryPlan plan = LayerByLayer(Placement::kKeep);
  EXPECT_EQ(Residency(plan,
                      "0DROP.0 0DROP.1 0F0 0SWAP_IN.1 0DROP.1 0DROP.0 0SWAP_OUT.2 0SWAP_OUT.3 0B0 "
                      "0SWAP_OUT_END.3 0SWAP_OUT_END.2"),
            "resident");
  EXPECT_EQ(Residency(plan, "0DROP.0 0DROP.1 0F0 0DROP.0 0B0"),
            "worker 0 has 0B0, which needs group 1 of stage 0 (parameters of layer 1) resident or "
            "on its way in, but it is away since 0F0\n"
            "worker 0: 0DROP.0 0DROP.1 0F0 0DROP.0 0B0 <-- here");
  EXPECT_EQ(Residency(plan, "0DROP.0 0DROP.1 0F0 0DROP.0"),
            "worker 0 has 0DROP.0, but at the end of the program group 0 of stage 0 (parameters of "
            "layer 0) is to be dropped by its F; the next step looks for it away\n"
            "worker 0: 0DROP.0 0DROP.1 0F0 0DROP.0 <-- here");
  EXPECT_EQ(Residency(plan, "0DROP.0 0DROP.1 0F0 0DROP.2 0B0"),
            "worker 0 has 0DROP.2, which needs group 2 of stage 0 (gradients of layer 0) resident, "
            "but it is away\n"
            "worker 0: 0DROP.0 0DROP.1 0F0 0DROP.2 <-- here 0B0");
}

TEST(CheckGroupResidency, WhatABackwardComputesAgainHasTheParametersOfAllItsLayers) {
  const std::string program =
      "0DROP0.4 0DROP.0 0DROP.1 0F0 0DROP.0 0DROP.1 0SWAP_OUT.2 0SWAP_OUT.3 0B0";
  EXPECT_EQ(Residency(LayerByLayer(Placement::kRecompute), program),
            "worker 0 has 0B0, which computes group 4 of stage 0 (activations of layers 0 to 1) of "
            "microbatch 0 again, but has group 0 of stage 0 (parameters of layer 0) only while it "
            "is at these layers\n"
            "worker 0: 0DROP0.4 0DROP.0 0DROP.1 0F0 0DROP.0 0DROP.1 0SWAP_OUT.2 0SWAP_OUT.3 0B0 "
            "<-- here");
}

TEST(CheckGroupResidency, NothingIsDroppedThatIsNowhereElse) {
  EXPECT_EQ(Residency(OneOfEach(), "0SWAP_IN.3 0F0 0SWAP_IN.4 0B0 0DROP.3 0DROP.4"),
            "worker 0 has 0DROP.4, but group 4 of stage 0 (gradients of layers 0 to 2) has changed "
            "since it came in: it has to go by SWAP_OUT\n"
            "worker 0: 0SWAP_IN.3 0F0 0SWAP_IN.4 0B0 0DROP.3 0DROP.4 <-- here");
  std::string text = kStaticGroups;
  text.replace(text.find("0SWAP_OUT.3"), 11, "0DROP.3");
  EXPECT_EQ(Residency(OneOfEach(), text).substr(0, 89),
            "worker 0 has 0DROP.3, but group 3 of stage 0 (parameters of layers 0 to 2) has "
            "changed si");
}

TEST(CheckGroupResidency, WhatIsComputedAgainNeedsItsParameters) {
  EXPECT_EQ(Residency(OneOfEach(), "0SWAP_IN.3 0DROP0.1 0F0 0DROP.3 0RECOMPUTE0.1 0B0"),
            "worker 0 has 0RECOMPUTE0.1, which needs group 3 of stage 0 (parameters of layers 0 to "
            "2) resident or on its way in, but it is away since 0DROP.3\n"
            "worker 0: 0SWAP_IN.3 0DROP0.1 0F0 0DROP.3 0RECOMPUTE0.1 <-- here 0B0");
}

TEST(CheckGroupResidency, AStepOnTheHostUsesWhatTheHostHas) {
  MemoryPlan plan = OneOfEach();
  const std::string step =
      "0SWAP_IN.3 0F0 0SWAP_IN.4 0B0 0DROP.3 0SWAP_OUT.4 0SWAP_OUT_END.4 0STEP";
  EXPECT_EQ(Residency(plan, step).substr(0, 80),
            "worker 0 has 0STEP, which needs group 3 of stage 0 (parameters of layers 0 to 2)");
  plan.stages[0].update = UpdatePlace::kHost;
  EXPECT_EQ(Residency(plan, step), "resident");
  EXPECT_EQ(Residency(plan, "0SWAP_IN.5 0F0"),
            "worker 0 has 0SWAP_IN.5, but group 5 of stage 0 (optimizer_state of layers 0 to 2) "
            "stays on the host, where the plan has its step\n"
            "worker 0: 0SWAP_IN.5 <-- here 0F0");
}

TEST(CheckGroupResidency, WhatStepsOnTheDeviceHasItsOwnStepBesideTheHosts) {
  MemoryPlan plan;
  plan.stages = {{.groups = {Group(GroupKind::kOptimizerState, {0, 1}, Placement::kHostSwap),
                             Group(GroupKind::kOptimizerState, {1, 2}, Placement::kKeep),
                             Group(GroupKind::kParameters, {1, 2}, Placement::kHostSwap)},
                  .update = UpdatePlace::kHost}};
  const std::string passes = "0SWAP_IN.2 0F0 0B0 ";
  EXPECT_EQ(Residency(plan, passes + "0STEP.1 0SWAP_OUT.2 0SWAP_OUT_END.2 0STEP"), "resident");
  EXPECT_EQ(Residency(plan, passes + "0STEP.0 0STEP.1 0SWAP_OUT.2 0SWAP_OUT_END.2 0STEP"),
            "resident");
  EXPECT_EQ(Residency(plan, passes + "0STEP.0 0STEP"),
            "worker 0 has 0STEP, a step on the host, but the optimizer state of layer 1 is planned "
            "as keep and steps on the device: in a STEP of its group\n"
            "worker 0: 0SWAP_IN.2 0F0 0B0 0STEP.0 0STEP <-- here");
  EXPECT_EQ(Residency(plan, passes + "0DROP.2 0STEP.1 0STEP").substr(0, 60),
            "worker 0 has 0STEP.1, which needs group 2 of stage 0 (parame");
}

TEST(CheckGroupResidency, OnlyAStepCanBeOnTheHost) {
  MemoryPlan plan;
  plan.stages = {{.update = UpdatePlace::kHost}};
  EXPECT_EQ(Residency(plan, "0F0 0B0 0UPDATE0"),
            "worker 0 has 0UPDATE0, but the memory plan has the step of stage 0 on the host, which "
            "takes STEPs only\n"
            "worker 0: 0F0 0B0 0UPDATE0 <-- here");
}

TEST(CheckGroupResidency, EveryGroupOfOptimizerStateSteps) {
  MemoryPlan plan;
  plan.stages = {{.groups = {Group(GroupKind::kOptimizerState, {0, 1}, Placement::kHostSwap),
                             Group(GroupKind::kOptimizerState, {1, 2}, Placement::kKeep)}}};
  const std::string first = "0F0 0B0 0SWAP_IN.0 0STEP.0 0SWAP_OUT.0 0SWAP_OUT_END.0";
  EXPECT_EQ(Residency(plan, first + " 0STEP.1"), "resident");
  EXPECT_EQ(Residency(plan, first + " 0STEP"), "resident");
  EXPECT_EQ(Residency(plan, first),
            "worker 0 has 0STEP.0, but nothing steps group 1 of stage 0 (optimizer_state of layer "
            "1)\n"
            "worker 0: 0F0 0B0 0SWAP_IN.0 0STEP.0 <-- here 0SWAP_OUT.0 0SWAP_OUT_END.0");
}

TEST(CheckGroupResidency, NamesGroupsThatThePlanDoesNotMoveThatWay) {
  const MemoryPlan plan = OneOfEach();
  const auto message = [&](absl::string_view text) {
    const std::string whole = Residency(plan, text);
    return whole.substr(0, whole.find('\n'));
  };
  EXPECT_EQ(Residency({}, "0F0 0SWAP_OUT0.0 0B0"),
            "worker 0 has 0SWAP_OUT0.0, but the memory plan has no tensor groups in stage 0\n"
            "worker 0: 0F0 0SWAP_OUT0.0 <-- here 0B0");
  EXPECT_EQ(message("0SWAP_OUT0.6 0F0 0B0"),
            "worker 0 has 0SWAP_OUT0.6, but the tensor groups of stage 0 are 0 to 5");
  EXPECT_EQ(message("0SWAP_OUT0.2 0F0 0B0"),
            "worker 0 has 0SWAP_OUT0.2, but group 2 of stage 0 (activations of layer 2) of "
            "microbatch 0 is planned as keep");
  EXPECT_EQ(message("0DROP0.0 0F0 0B0"),
            "worker 0 has 0DROP0.0, but group 0 of stage 0 (activations of layer 0) of microbatch "
            "0 is planned as host_swap");
  EXPECT_EQ(message("0SWAP_IN.0 0F0 0B0"),
            "worker 0 has 0SWAP_IN.0, but group 0 of stage 0 (activations of layer 0) is there "
            "once a microbatch: name one");
  EXPECT_EQ(message("0SWAP_IN0.3 0F0 0B0"),
            "worker 0 has 0SWAP_IN0.3, but group 3 of stage 0 (parameters of layers 0 to 2) "
            "belongs to no microbatch");
  EXPECT_EQ(message("0RECOMPUTE.3 0F0 0B0"),
            "worker 0 has 0RECOMPUTE.3, but group 3 of stage 0 (parameters of layers 0 to 2) is "
            "planned as host_swap");
  EXPECT_EQ(message("0STEP.3 0F0 0B0"),
            "worker 0 has 0STEP.3, but group 3 of stage 0 (parameters of layers 0 to 2) has no "
            "step: name a group of optimizer state");
  EXPECT_EQ(Residency(Activations(), "0F0 0SWAP_OUT0 0SWAP_OUT_END0 0SWAP_IN0 0SWAP_IN_END0 0B0"),
            "worker 0 has 0SWAP_OUT0, which means the whole of stage 0, but the memory plan has "
            "tensor groups there: name one\n"
            "worker 0: 0F0 0SWAP_OUT0 <-- here 0SWAP_OUT_END0 0SWAP_IN0 0SWAP_IN_END0 0B0");
  EXPECT_EQ(Residency(plan, "0F0\n1F0"), "the memory plan has 1 stages, but the schedule has 2");
}

}  // namespace
}  // namespace siphon
