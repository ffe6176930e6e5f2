#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/lower_schedule.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

// One worker, 10 ns an action, 100 bytes of activations, of which 30 stay for W.
StageCost HundredBytes() {
  StageCost cost = TenNanos();
  cost.stash = Bytes(100);
  cost.kept_for_weights = Bytes(30);
  return cost;
}

TEST(SimulatedMemory, ActivationsStayFromForwardToBackward) {
  StageCost cost = HundredBytes();
  cost.parameters = Bytes(1000);
  cost.forward_workspace = Bytes(7);
  cost.backward_workspace = Bytes(9);
  const SimulatedStep step = Simulated(EqualStages(ParsedSchedule("0F0 0F1 0B1 0B0\n"), cost));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 1000, activations 100, workspace 7\n"
            "10: parameters 1000, activations 200, workspace 7\n"
            "20: parameters 1000, activations 200, workspace 9\n"
            "40: parameters 1000, activations 100, workspace 9\n"
            "60: parameters 1000\n");
  EXPECT_EQ(step.peak[0][MemoryKind::kActivations], Bytes(200));
  EXPECT_EQ(Total(step.peak[0]), Bytes(1209));
}

TEST(SimulatedMemory, WhatTheWeightGradientsNeedStaysUntilThey) {
  const SimulatedStep step =
      Simulated(EqualStages(ParsedSchedule("0F0 0I0 0W0\n"), HundredBytes()));
  EXPECT_EQ(CurveText(step.memory[0]), "0: activations 100\n20: activations 30\n30:\n");
}

TEST(SimulatedMemory, LayersComeAndGoOneByOne) {
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0I0 0W0\n"), HundredBytes());
  input.layers = {{{Nanos(4), Nanos(3), Nanos(5), Bytes(60), Bytes(10)},
                   {Nanos(6), Nanos(7), Nanos(5), Bytes(40), Bytes(20)}}};
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n0I0 [10,20) worker 0\n0W0 [20,30) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 60\n"
            "4: activations 100\n"
            "17: activations 80\n"
            "20: activations 30\n"
            "25: activations 10\n"
            "30:\n");
}

// 100 bytes between two layers that both save them; the second needs them for W.
TEST(SimulatedMemory, WhatTwoLayersSaveIsThereOnceUntilBothAreDone) {
  const ModelProfile profile{.layers = {{.forward = Nanos(5),
                                         .input_backward = Nanos(5),
                                         .weight_backward = Nanos(5),
                                         .saved = {{"mask", Bytes(20)}, {"output", Bytes(100)}},
                                         .saved_output = Bytes(100)},
                                        {.forward = Nanos(5),
                                         .input_backward = Nanos(5),
                                         .weight_backward = Nanos(5),
                                         .saved = {{"input", Bytes(100)}, {"mean", Bytes(3)}},
                                         .saved_input = Bytes(100),
                                         .kept_for_weights = Bytes(100)}}};
  const StagePartition partition{.stages = {{0, 2}}};
  SimulationInput input{.schedule = ParsedSchedule("0F0 0I0 0W0\n"),
                        .stages = StageCosts(profile, partition),
                        .layers = LayerCosts(profile, partition)};
  EXPECT_EQ(CurveText(Simulated(input).memory[0]),
            "0: activations 20\n"
            "5: activations 123\n"
            "15: activations 120\n"
            "20: activations 100\n"
            "30:\n");
}

// Two layers of 5 ns a pass save 60 and 40 bytes; for W they keep 60 and 90.
SimulationInput GrowsBeforeW(Bytes input_backward_workspace) {
  StageCost cost = TenNanos();
  cost.stash = Bytes(100);
  cost.kept_for_weights = Bytes(150);
  cost.backward_workspace = Bytes(40);
  cost.input_backward_workspace = input_backward_workspace;
  cost.weight_backward_workspace = Bytes(12);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0I0 0W0\n"), cost);
  input.layers = {{{Nanos(5), Nanos(5), Nanos(5), Bytes(60), Bytes(60)},
                   {Nanos(5), Nanos(5), Nanos(5), Bytes(40), Bytes(90)}}};
  return input;
}

// At its fullest an I takes its 70 bytes beside the stash, of which 50 become part of what is kept.
TEST(SimulatedMemory, WhatAnInputBackwardKeepsComesOutOfItsWorkspace) {
  const SimulatedStep step = Simulated(GrowsBeforeW(Bytes(70)));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 60\n"
            "5: activations 100\n"
            "10: activations 150, workspace 20\n"
            "20: activations 150, workspace 12\n"
            "25: activations 60, workspace 12\n"
            "30:\n");
  EXPECT_EQ(Total(step.peak[0]), Bytes(170));
}

TEST(SimulatedMemory, AnInputBackwardMayKeepMoreThanItsWorkspace) {
  const SimulatedStep step = Simulated(GrowsBeforeW(Bytes(30)));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 60\n"
            "5: activations 100\n"
            "10: activations 150\n"
            "20: activations 150, workspace 12\n"
            "25: activations 60, workspace 12\n"
            "30:\n");
}

TEST(SimulatedMemory, WhatAnInputBackwardNoLongerKeepsIsWorkspaceAgain) {
  SimulationInput input = GrowsBeforeW(Bytes(70));
  input.layers[0][0].kept_for_weights = Bytes(20);
  input.layers[0].insert(input.layers[0].begin(), {Nanos(0), Nanos(2), Nanos(0)});
  input.stages[0].input_backward = Nanos(12);
  input.stages[0].kept_for_weights = Bytes(110);
  EXPECT_EQ(CurveText(Simulated(input).memory[0]),
            "0: activations 60\n"
            "5: activations 100\n"
            "10: activations 150, workspace 20\n"
            "20: activations 110, workspace 60\n"
            "22: activations 110, workspace 12\n"
            "27: activations 20, workspace 12\n"
            "32:\n");
}

// A capacity of exactly the peak: what gives memory back is first.
TEST(SimulatedMemory, AnInputBackwardFitsIntoItsPeak) {
  SimulationInput input = GrowsBeforeW(Bytes(70));
  input.capacity = {Bytes(170)};
  EXPECT_TRUE(Simulate(input).ok()) << Simulate(input).status();
  input.capacity = {Bytes(169)};
  EXPECT_FALSE(Simulate(input).ok());
}

TEST(SimulatedMemory, BoundaryTensorsLiveAtTheirMakerUntilSentAndAtTheirUserUntilUsed) {
  StageCost cost = TenNanos();
  cost.output = Bytes(8);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n1F0 1B0\n"), cost);
  input.transport.latency = Nanos(5);
  const SimulatedStep step = Simulated(input);
  // Output of stage 0 until 15; its gradient comes from 45, where 1B0 ends, and is used until 70.
  EXPECT_EQ(CurveText(step.memory[0]), "0: boundary 8\n15:\n45: boundary 8\n70:\n");
  // Input from 10 to 25; then the gradient that 1B0 makes, until it is sent at 50.
  EXPECT_EQ(CurveText(step.memory[1]), "0:\n10: boundary 8\n25: boundary 8\n50:\n");
}

TEST(SimulatedMemory, ALoweredReceiveTakesItsBufferWhenItIsPosted) {
  StageCost cost = TenNanos();
  cost.output = Bytes(8);
  const SimulatedStep step = Simulated(
      EqualStages(ParsedSchedule("0F0 0SEND_F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0\n"), cost));
  EXPECT_EQ(CurveText(step.memory[1]), "0: boundary 8\n20: boundary 8\n40:\n");
}

TEST(SimulatedMemory, ATensorBetweenStagesOfOneWorkerIsThereOnce) {
  StageCost cost = TenNanos();
  cost.output = Bytes(8);
  const SimulatedStep step = Simulated(EqualStages(ParsedSchedule("0F0 1F0 1B0 0B0\n"), cost));
  EXPECT_EQ(CurveText(step.memory[0]), "0: boundary 8\n20: boundary 8\n60:\n");
}

TEST(SimulatedMemory, SwappedActivationsAreWithTheHostMeanwhile) {
  // 100 bytes at 10 GB/s: 10 ns a copy. Out behind F0, under F1; in under B1.
  SimulationInput input = EqualStages(
      ParsedSchedule("0F0 0SWAP_OUT0 0F1 0SWAP_OUT_END0 0SWAP_IN0 0B1 0SWAP_IN_END0 0B0\n"),
      HundredBytes());
  input.transport.host_rate = BytesPerSecond(10'000'000'000);
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n10: activations 200\n20: activations 200\n40: activations 100\n"
            "60:\n");
  EXPECT_EQ(step.host_peak, Bytes(100));
  ASSERT_EQ(step.other_memory.size(), 1);
  EXPECT_EQ(step.other_memory[0].name, "the host");
  EXPECT_EQ(CurveText(step.other_memory[0].curve), "0:\n10: activations 100\n30:\n");
  EXPECT_EQ(step.step_time, Nanos(60));
  EXPECT_EQ(step.lanes[0].name, "device 0, copies to host");
  EXPECT_EQ(step.lanes[0].bytes, Bytes(100));
  EXPECT_EQ(ToString(step.lanes[0].intervals[0].action), "0SWAP_OUT0");
}

TEST(SimulatedMemory, ASwapThatIsTooSlowIsAWaitOfItsOwn) {
  SimulationInput input = EqualStages(
      ParsedSchedule("0F0 0SWAP_OUT0 0F1 0SWAP_OUT_END0 0B1 0SWAP_IN0 0SWAP_IN_END0 0B0\n"),
      HundredBytes());
  input.transport.host_rate = BytesPerSecond(5'000'000'000);  // 20 ns a copy
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0F1 [10,20) worker 0\n"
            "wait 0SWAP_OUT_END0 [20,30) worker 0\n"
            "0B1 [30,50) worker 0\n"
            "wait 0SWAP_IN_END0 [50,70) worker 0\n"
            "0B0 [70,90) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n10: activations 200\n30: activations 100\n50: activations 100\n"
            "90:\n");
  EXPECT_EQ(step.exposed_waits[0][static_cast<size_t>(WaitCause::kSwap)], Nanos(30));
}

TEST(SimulatedMemory, BetweenIAndWOnlyWhatWNeedsIsSwapped) {
  const SimulatedStep step = Simulated(EqualStages(
      ParsedSchedule("0F0 0I0 0SWAP_OUT0 0SWAP_OUT_END0 0F1 0B1 0SWAP_IN0 0SWAP_IN_END0 0W0\n"),
      HundredBytes()));
  EXPECT_EQ(step.host_peak, Bytes(30));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n20: activations 100\n50: activations 30\n60:\n");
}

TEST(SimulatedMemory, DroppedActivationsLeaveTheInputBehind) {
  StageCost cost = HundredBytes();
  cost.output = Bytes(8);
  const SimulatedStep step =
      Simulated(EqualStages(ParsedSchedule("0F0 0B0\n1F0 1DROP0 1RECOMPUTE0 1B0\n"), cost));
  EXPECT_EQ(CurveText(step.memory[1]),
            "0:\n"
            "10: activations 100, boundary 8\n"
            "20: activations 100\n"
            "30: activations 100, boundary 8\n"
            "50:\n");
  EXPECT_THAT(TimelineText(step), testing::HasSubstr("1RECOMPUTE0 [20,30) worker 1\n"));
}

TEST(SimulatedMemory, ADropFreesUntilItIsComputedAgain) {
  const SimulatedStep step = Simulated(
      EqualStages(ParsedSchedule("0F0 0DROP0 0F1 0B1 0RECOMPUTE0 0B0\n"), HundredBytes()));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n10: activations 100\n40: activations 100\n70:\n");
  EXPECT_EQ(Total(step.peak[0]), Bytes(100));
}

TEST(SimulatedMemory, AnOlderWeightVersionStaysForWhatComesBackToIt) {
  // Both microbatches went through version 0. UPDATE0 has to leave it to microbatch 1.
  StageCost cost = TenNanos();
  cost.parameters = Bytes(50);
  const SimulatedStep step =
      Simulated(EqualStages(ParsedSchedule("0F0 0F1 0B0 0UPDATE0 0B1 0UPDATE1\n"), cost));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 50\n"
            "40: parameters 50, weight versions 50\n"
            "64: parameters 50\n");
}

TEST(SimulatedMemory, WhatIsHeldAnywayCounts) {
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n"), HundredBytes());
  input.held.resize(1);
  input.held[0][MemoryKind::kCommunication] = Bytes(11);
  EXPECT_EQ(CurveText(Simulated(input).memory[0]),
            "0: activations 100, communication 11\n30: communication 11\n");
}

}  // namespace
}  // namespace siphon
