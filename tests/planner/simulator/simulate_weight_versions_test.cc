#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

PlannedGroup Versions(StageRange layers, int64_t bytes,
                      GroupChoice choice = {.placement = Placement::kHostSwap}) {
  return {{.kind = GroupKind::kWeightVersions, .layers = layers, .bytes = Bytes(bytes)},
          std::move(choice)};
}

// One stage a worker, each of two layers of 5 ns forward and 10 ns backward, which take 4 ns to
// update; 50 bytes of parameters, nothing else. The host takes 10 bytes a nanosecond, each way.
SimulationInput TwoLayers(absl::string_view schedule, std::vector<PlannedGroup> groups) {
  StageCost cost = TenNanos();
  cost.parameters = Bytes(50);
  SimulationInput input = EqualStages(ParsedSchedule(schedule), cost);
  const LayerCost layer{
      .forward = Nanos(5), .input_backward = Nanos(5), .weight_backward = Nanos(5)};
  input.layers.assign(input.stages.size(), {layer, layer});
  input.transport.host_rate = BytesPerSecond(10 * kGigabyte);
  input.memory.stages.resize(input.stages.size());
  input.memory.stages[0].groups = std::move(groups);
  return input;
}

constexpr char kKept[] = "0F0 0F1 0B0 0UPDATE0 0F2 0B1 0UPDATE1 0B2 0UPDATE2\n";

TEST(SimulatedWeightVersions, TakeMemoryFromTheirUpdateToTheirLastUse) {
  const std::string kept =
      "0: parameters 50\n"
      "40: parameters 50, weight versions 50\n"
      "74: parameters 50, weight versions 50\n"
      "98: parameters 50\n";
  EXPECT_EQ(CurveText(Simulated(TwoLayers(kKept, {})).memory[0]), kept);
  EXPECT_EQ(CurveText(Simulated(TwoLayers(kKept, {Versions({0, 2}, 50)})).memory[0]), kept);
}

// Copied while it is still the newest, a version never takes memory of its own until it comes back.
TEST(SimulatedWeightVersions, LeaveBeforeTheirUpdateWithoutTakingMemory) {
  const SimulatedStep step = Simulated(
      TwoLayers("0SWAP_OUT0.0 0F0 0F1 0B0 0SWAP_OUT_END0.0 0UPDATE0 0F2 0SWAP_IN0.0 0B1 0UPDATE1 "
                "0B2 0UPDATE2\n",
                {Versions({0, 2}, 50)}));
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT0.0 [0,5) device 0, copies to host\n"
            "0SWAP_IN0.0 [54,59) device 0, copies from host\n");
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0F1 [10,20) worker 0\n"
            "0B0 [20,40) worker 0\n"
            "0UPDATE0 [40,44) worker 0\n"
            "0F2 [44,54) worker 0\n"
            "wait 0B1 [54,59) worker 0\n"
            "0B1 [59,79) worker 0\n"
            "0UPDATE1 [79,83) worker 0\n"
            "0B2 [83,103) worker 0\n"
            "0UPDATE2 [103,107) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 50\n"
            "54: parameters 50, weight versions 50\n"
            "79: parameters 50, weight versions 50\n"
            "103: parameters 50\n");
  EXPECT_EQ(step.host_peak, Bytes(50));
}

TEST(SimulatedWeightVersions, LeaveBehindTheirUpdateAndFreeTheStash) {
  const SimulatedStep step =
      Simulated(TwoLayers("0F0 0F1 0B0 0SWAP_OUT0.0 0UPDATE0 0SWAP_OUT_END0.0 0F2 0SWAP_IN0.0 "
                          "0SWAP_IN_END0.0 0B1 0UPDATE1 0B2 0UPDATE2\n",
                          {Versions({0, 2}, 50)}));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 50\n"
            "40: parameters 50, weight versions 50\n"
            "45: parameters 50\n"
            "55: parameters 50, weight versions 50\n"
            "80: parameters 50, weight versions 50\n"
            "104: parameters 50\n");
}

TEST(SimulatedWeightVersions, StayWithTheLayersThatNoGroupHas) {
  const SimulatedStep step = Simulated(
      TwoLayers("0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0B0 0UPDATE0 0F2 0SWAP_IN0.0 0B1 0UPDATE1 "
                "0B2 0UPDATE2\n",
                {Versions({0, 1}, 20)}));
  // Of the 50 bytes the group has 20, of the first layer, which the backward comes to last.
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 50\n"
            "40: parameters 50, weight versions 30\n"
            "54: parameters 50, weight versions 50\n"
            "74: parameters 50, weight versions 50\n"
            "98: parameters 50\n");
  EXPECT_EQ(step.step_time, Nanos(102));
}

TEST(SimulatedWeightVersions, AreLentToOtherWorkersMeanwhile) {
  SimulationInput input = TwoLayers(
      "0SWAP_OUT0.0 0F0 0F1 0B0 0SWAP_OUT_END0.0 0UPDATE0 0SWAP_IN0.0 0SWAP_IN_END0.0 0B1 "
      "0UPDATE1\n1F0 1B0 1UPDATE0 1F1 1B1 1UPDATE1\n",
      {Versions({0, 2}, 50,
                {.placement = Placement::kPeerSwap, .stripes = {{DeviceId(1), Bytes(50)}}})});
  input.transport.rate = BytesPerSecond(10 * kGigabyte);
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(step.peak[1][MemoryKind::kLent], Bytes(50));
  EXPECT_EQ(step.memory[1].front().bytes[MemoryKind::kLent], Bytes(50));
  EXPECT_EQ(step.memory[1].back().bytes[MemoryKind::kLent], Bytes(0));
  input.capacity = {Bytes(0), Bytes(99)};
  EXPECT_THAT(std::string(Simulate(input).status().message()),
              testing::HasSubstr("0SWAP_OUT0.0, which asks for 50 B of lent memory, but worker "
                                 "1, its lender, has 49 B free of 99 B"));
}

// One group behind, forwards go by older weights, too: here microbatch 1 by the initial ones.
TEST(SimulatedWeightVersions, AreWaitedForByForwardsAtTheFirstLayer) {
  SimulationInput input =
      TwoLayers("0SWAP_OUT0.0 0F0 0B0 0SWAP_OUT_END0.0 0UPDATE0 0SWAP_IN0.0 0F1 0B1 0UPDATE1\n",
                {Versions({1, 2}, 50)});
  input.schedule.weight_rule = WeightRule::kOneGroupBehind;
  input.transport.host_rate = BytesPerSecond(5 * kGigabyte);
  EXPECT_EQ(TimelineText(Simulated(input)),
            "0F0 [0,10) worker 0\n"
            "0B0 [10,30) worker 0\n"
            "0UPDATE0 [30,34) worker 0\n"
            "0F1 [34,39) worker 0\n"
            "wait 0F1 [39,44) worker 0\n"
            "0F1 [44,49) worker 0\n"
            "0B1 [49,69) worker 0\n"
            "0UPDATE1 [69,73) worker 0\n");
}

TEST(SimulatedWeightVersions, AreNotMoreThanTheParameters) {
  EXPECT_EQ(Simulate(TwoLayers(kKept, {Versions({0, 2}, 51)})).status().message(),
            "group 0 of stage 0 has 51 bytes of weight_versions, but the stage has 50, and groups "
            "before this one 0");
}

}  // namespace
}  // namespace siphon
