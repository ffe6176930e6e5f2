// Groups of some of the tensors that a layer saves, and of tensors that two layers save.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/simulator/two_layers.h"

namespace siphon {
namespace {

// Of the first layer's 100 bytes the first 70 leave, or are dropped; the other 30 stay.
std::vector<PlannedGroup> FirstTensors(const GroupChoice& choice) {
  std::vector<PlannedGroup> groups = TwoGroups(choice);
  groups[0].group.bytes = Bytes(70);
  groups[0].group.recompute = Nanos(2);
  groups[0].group.first_tensors = 1;
  return groups;
}

TEST(SimulatedPartsOfLayers, OfALayerOnlyTheFirstTensorsLeave) {
  const SimulatedStep step = Simulated(TwoLayers(
      "0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0B1 0SWAP_IN0.0 0B0\n", FirstTensors(kHost)));
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT0.0 [5,12) device 0, copies to host\n"
            "0SWAP_IN0.0 [40,47) device 0, copies from host\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n"
            "5: activations 160\n"
            "10: activations 260\n"
            "15: activations 320\n"
            "20: activations 250\n"
            "30: activations 190\n"
            "40: activations 160\n"
            "50: activations 100\n"
            "60:\n");
}

// Dropped, the 30 and the input's 8 bytes stay; 2 ns make the other 62 again.
TEST(SimulatedPartsOfLayers, OfALayerOnlyTheFirstTensorsAreComputedAgain) {
  const SimulatedStep step = Simulated(TwoLayers("0DROP0.0 0F0 0B0\n", FirstTensors(kDropped)));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 38\n"
            "5: activations 98\n"
            "20: activations 100\n"
            "32:\n");
}

// 40 of the second layer's 60 bytes are what the first one saves, too.
SimulationInput TwoLayersThatShare(absl::string_view schedule, std::vector<PlannedGroup> groups) {
  SimulationInput input = TwoLayers(schedule, std::move(groups));
  input.layers[0][1].shared_before = Bytes(40);
  return input;
}

TEST(SimulatedPartsOfLayers, WhatTwoLayersSaveLeavesWithTheSecondAndIsFreedByTheFirst) {
  const SimulatedStep step = Simulated(TwoLayersThatShare(
      "0SWAP_OUT0.1 0F0 0F1 0SWAP_OUT_END0.1 0B1 0SWAP_IN0.1 0B0\n", TwoGroups({}, kHost)));
  // 6 ns a copy; the one back in is waited for.
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n"
            "5: activations 160\n"
            "10: activations 260\n"
            "15: activations 320\n"
            "20: activations 260\n"
            "30: activations 240\n"
            "40: activations 160\n"
            "56: activations 140\n"
            "66:\n");
}

TEST(SimulatedPartsOfLayers, WhatTwoLayersSaveStaysWithTheSecondWhichEverIsDropped) {
  const auto curve = [](absl::string_view schedule, std::vector<PlannedGroup> groups) {
    return CurveText(Simulated(TwoLayersThatShare(schedule, std::move(groups))).memory[0]);
  };
  // 8 bytes of the first stay; the second's 60 are there.
  EXPECT_EQ(curve("0DROP0.0 0F0 0B0\n", TwoGroups(kDropped)),
            "0: activations 8\n"
            "5: activations 68\n"
            "20: activations 140\n"
            "35:\n");
  // Of the second, what both save is the input.
  std::vector<PlannedGroup> second = TwoGroups({}, kDropped);
  second[1].group.input = Bytes(40);
  EXPECT_EQ(curve("0DROP0.1 0F0 0B0\n", second),
            "0: activations 100\n"
            "5: activations 140\n"
            "10: activations 160\n"
            "25: activations 140\n"
            "35:\n");
}

// Operations before the last of them take more than the whole forward does beside all it saves.
TEST(SimulatedPartsOfLayers, FirstTensorsTakeTheirOwnRoomToBeComputedAgain) {
  PlannedGroup first = TwoGroups({}, kDropped)[1];
  first.group.bytes = Bytes(30);
  first.group.first_tensors = 2;
  first.group.workspace = Bytes(25);
  SimulationInput input = TwoLayers("0DROP0.0 0F0 0RECOMPUTE0.0 0B0\n", {first});
  input.stages[0].forward_workspace = Bytes(9);
  input.stages[0].backward_workspace = Bytes(7);
  EXPECT_EQ(CurveText(Simulated(input).memory[0]),
            "0: activations 100, workspace 9\n"
            "5: activations 138, workspace 9\n"
            "10: activations 160, workspace 25\n"
            "15: activations 160, workspace 7\n"
            "25: activations 100, workspace 7\n"
            "35:\n");
  // In the backward, beside what that holds for itself.
  input.schedule = TwoLayers("0DROP0.0 0F0 0B0\n", {first}).schedule;
  EXPECT_THAT(CurveText(Simulated(input).memory[0]), testing::HasSubstr(", workspace 25\n"));
}

}  // namespace
}  // namespace siphon
