#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;  // at 1 GB/s one byte takes one nanosecond

// Group 0 are the first layer's 100 bytes of activations, group 1 the second layer's 60. The
// layer's input, which stays when a group is dropped, is 8 bytes.
std::vector<PlannedGroup> TwoGroups(const GroupChoice& first, const GroupChoice& second = {}) {
  const TensorGroup group{.input = Bytes(8), .recompute = Nanos(5)};
  std::vector<PlannedGroup> groups = {{group, first}, {group, second}};
  groups[0].group.layers = {0, 1};
  groups[0].group.bytes = Bytes(100);
  groups[1].group.layers = {1, 2};
  groups[1].group.bytes = Bytes(60);
  return groups;
}

const GroupChoice kHost{.placement = Placement::kHostSwap};
const GroupChoice kDropped{.placement = Placement::kRecompute};

// One worker with one stage of two layers, each 5 ns forward, 5 for the input's gradient and 5 for
// the weights'; 20 and 10 bytes stay for W. The host takes 10 bytes a nanosecond, each way.
SimulationInput TwoLayers(absl::string_view schedule, std::vector<PlannedGroup> groups) {
  const LayerCost layer{
      .forward = Nanos(5), .input_backward = Nanos(5), .weight_backward = Nanos(5)};
  SimulationInput input = EqualStages(ParsedSchedule(schedule), {.forward = Nanos(10),
                                                                 .input_backward = Nanos(10),
                                                                 .weight_backward = Nanos(10),
                                                                 .stash = Bytes(160),
                                                                 .kept_for_weights = Bytes(30)});
  input.layers = {{layer, layer}};
  input.layers[0][0].stash = Bytes(100);
  input.layers[0][0].kept_for_weights = Bytes(20);
  input.layers[0][1].stash = Bytes(60);
  input.layers[0][1].kept_for_weights = Bytes(10);
  input.transport.host_rate = BytesPerSecond(10 * kGigabyte);
  input.memory.stages = {{.groups = std::move(groups)}};
  return input;
}

Nanos WaitForSwaps(const SimulatedStep& step, int worker) {
  return step.exposed_waits[worker][static_cast<size_t>(WaitCause::kSwap)];
}

TEST(SimulatedGroups, ASwapBeforeItsForwardStartsBehindTheGroupsLastLayer) {
  const SimulatedStep step = Simulated(
      TwoLayers("0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0B1 0SWAP_IN0.0 0B0\n", TwoGroups(kHost)));
  // The copy back in runs under the second layer's backward.
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT0.0 [5,15) device 0, copies to host\n"
            "0SWAP_IN0.0 [40,50) device 0, copies from host\n");
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0F1 [10,20) worker 0\n"
            "0B1 [20,40) worker 0\n"
            "0B0 [40,60) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n"
            "5: activations 160\n"
            "10: activations 260\n"
            "15: activations 320\n"
            "20: activations 220\n"
            "30: activations 160\n"
            "40: activations 160\n"
            "50: activations 100\n"
            "60:\n");
  EXPECT_EQ(step.host_peak, Bytes(100));
  EXPECT_EQ(WaitForSwaps(step, 0), Nanos(0));
}

// Of the first layer's 100 bytes the first 70 leave, or are dropped; the other 30 stay.
std::vector<PlannedGroup> FirstTensors(const GroupChoice& choice) {
  std::vector<PlannedGroup> groups = TwoGroups(choice);
  groups[0].group.bytes = Bytes(70);
  groups[0].group.recompute = Nanos(2);
  groups[0].group.first_tensors = 1;
  return groups;
}

TEST(SimulatedGroups, OfALayerOnlyTheFirstTensorsLeave) {
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
TEST(SimulatedGroups, OfALayerOnlyTheFirstTensorsAreComputedAgain) {
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

TEST(SimulatedGroups, WhatTwoLayersSaveLeavesWithTheSecondAndIsFreedByTheFirst) {
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

TEST(SimulatedGroups, WhatTwoLayersSaveStaysWithTheSecondWhichEverIsDropped) {
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

TEST(SimulatedGroups, ASwapBehindTheForwardStartsThere) {
  const SimulatedStep step =
      Simulated(TwoLayers("0F0 0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0\n", TwoGroups(kHost)));
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT0.0 [10,20) device 0, copies to host\n"
            "0SWAP_IN0.0 [20,30) device 0, copies from host\n");
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "wait 0SWAP_OUT_END0.0 [10,20) worker 0\n"
            "0B0 [20,40) worker 0\n");
}

TEST(SimulatedGroups, ABackwardWaitsWhenItReachesAGroupOnItsWayIn) {
  SimulationInput input =
      TwoLayers("0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0\n", TwoGroups(kHost));
  input.transport.host_rate = BytesPerSecond(5 * kGigabyte);  // 20 ns a copy
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "wait 0SWAP_OUT_END0.0 [10,25) worker 0\n"
            "0B0 [25,35) worker 0\n"
            "wait 0B0 [35,45) worker 0\n"
            "0B0 [45,55) worker 0\n");
  EXPECT_EQ(WaitForSwaps(step, 0), Nanos(25));
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n"
            "5: activations 160\n"
            "25: activations 160\n"
            "35: activations 100\n"
            "55:\n");
}

TEST(SimulatedGroups, AnEndOfASwapInWaitsAtOnce) {
  const SimulatedStep step = Simulated(TwoLayers(
      "0SWAP_OUT0.1 0F0 0SWAP_OUT_END0.1 0SWAP_IN0.1 0SWAP_IN_END0.1 0B0\n", TwoGroups({}, kHost)));
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "wait 0SWAP_OUT_END0.1 [10,16) worker 0\n"
            "wait 0SWAP_IN_END0.1 [16,22) worker 0\n"
            "0B0 [22,42) worker 0\n");
}

TEST(SimulatedGroups, ADroppedGroupLeavesItsInputAndIsComputedAgainAtItsLastLayer) {
  const SimulatedStep step = Simulated(TwoLayers("0DROP0.0 0F0 0B0\n", TwoGroups(kDropped)));
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0B0 [10,20) worker 0\n"
            "0RECOMPUTE0.0 [20,25) worker 0\n"
            "0B0 [25,35) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 8\n"
            "5: activations 68\n"
            "20: activations 100\n"
            "35:\n");
}

TEST(SimulatedGroups, ARecomputeOfItsOwnComesWhereItStands) {
  const SimulatedStep step =
      Simulated(TwoLayers("0DROP0.1 0F0 0RECOMPUTE0.1 0B0\n", TwoGroups({}, kDropped)));
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0RECOMPUTE0.1 [10,15) worker 0\n"
            "0B0 [15,35) worker 0\n");
}

TEST(SimulatedGroups, ARecomputeInABackwardUsesTheForwardsWorkspace) {
  SimulationInput input = TwoLayers("0DROP0.1 0F0 0B0\n", TwoGroups({}, kDropped));
  input.stages[0].forward_workspace = Bytes(9);
  input.stages[0].backward_workspace = Bytes(7);
  EXPECT_EQ(CurveText(Simulated(input).memory[0]),
            "0: activations 100, workspace 9\n"
            "5: activations 108, workspace 9\n"
            "10: activations 160, workspace 9\n"
            "15: activations 160, workspace 7\n"
            "25: activations 100, workspace 7\n"
            "35:\n");
}

// Operations before the last of them take more than the whole forward does beside all it saves.
TEST(SimulatedGroups, FirstTensorsTakeTheirOwnRoomToBeComputedAgain) {
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

TEST(SimulatedGroups, WithASplitBackwardTheInputGradientNeedsTheGroupAndTheWeightsKeepTheirPart) {
  const SimulatedStep step =
      Simulated(TwoLayers("0SWAP_OUT0.0 0DROP0.1 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0I0 0W0\n",
                          TwoGroups(kHost, kDropped)));
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "wait 0SWAP_OUT_END0.0 [10,15) worker 0\n"
            "0RECOMPUTE0.1 [15,20) worker 0\n"
            "0I0 [20,30) worker 0\n"
            "0W0 [30,40) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n"
            "5: activations 108\n"
            "15: activations 160\n"
            "25: activations 110\n"
            "30: activations 30\n"
            "35: activations 20\n"
            "40:\n");
}

// Worker 0 as above, worker 1 with one layer like its two together.
SimulationInput TwoWorkers(absl::string_view schedule, std::vector<PlannedGroup> groups) {
  SimulationInput input = TwoLayers(schedule, std::move(groups));
  input.layers.push_back({LayerOf(input.stages[1])});
  input.memory.stages.resize(2);
  return input;
}

TEST(SimulatedGroups, ABackwardWaitsForItsGradientFirst) {
  SimulationInput input = TwoWorkers("0SWAP_OUT0.1 0F0 0SWAP_OUT_END0.1 0SWAP_IN0.1 0B0\n1F0 1B0\n",
                                     TwoGroups({}, kHost));
  input.transport.host_rate = BytesPerSecond(2 * kGigabyte);  // 30 ns a copy
  const SimulatedStep step = Simulated(input);
  // The gradient comes at 40, the group at 70.
  EXPECT_THAT(TimelineText(step), testing::StartsWith("0F0 [0,10) worker 0\n"
                                                      "wait 0SWAP_OUT_END0.1 [10,40) worker 0\n"
                                                      "wait 0B0 [40,70) worker 0\n"
                                                      "0B0 [70,90) worker 0\n"));
  EXPECT_EQ(WaitForSwaps(step, 0), Nanos(60));
  input.memory.stages[0].groups[1].choice = kDropped;
  input.schedule = ParsedSchedule("0DROP0.1 0F0 0B0\n1F0 1B0\n");
  EXPECT_THAT(TimelineText(Simulated(input)), testing::StartsWith("0F0 [0,10) worker 0\n"
                                                                  "wait 0B0 [10,40) worker 0\n"
                                                                  "0RECOMPUTE0.1 [40,45) worker 0\n"
                                                                  "0B0 [45,65) worker 0\n"));
}

TEST(SimulatedGroups, StripesGoToAllLendersAtOnce) {
  const GroupChoice striped{.placement = Placement::kPeerSwap,
                            .stripes = {{DeviceId(1), Bytes(30)}, {DeviceId(3), Bytes(70)}}};
  SimulationInput input = TwoWorkers("0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0\n1F0 1B0\n",
                                     TwoGroups(striped));
  input.topology = UniformTopology(4, BytesPerSecond(10 * kGigabyte), Nanos(1));
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT0.0 [5,9) device 0, copies to and from device 1\n"
            "0SWAP_IN0.0 [13,17) device 0, copies to and from device 1\n"
            "0SWAP_OUT0.0 [5,13) device 0, copies to and from device 3\n"
            "0SWAP_IN0.0 [13,21) device 0, copies to and from device 3\n"
            "0F0 [10,11) worker 0 to worker 1, forward\n"
            "1B0 [41,42) worker 1 to worker 0, backward\n");
  // 30 bytes on the other worker's device, 70 on one that has none.
  EXPECT_EQ(CurveText(step.memory[1]),
            "0:\n5: lent 30\n11: activations 160, lent 30\n17: activations 160\n41:\n");
  EXPECT_EQ(step.other_peaks, (std::vector<HolderPeak>{{"device 3", Bytes(70)}}));
  ASSERT_EQ(step.other_memory.size(), 1) << "the host holds nothing";
  EXPECT_EQ(step.other_memory[0].name, "device 3");
  const MemoryCurve& curve = step.other_memory[0].curve;
  EXPECT_EQ(Total(curve.front().bytes), Bytes(0));
  EXPECT_EQ(Total(curve.back().bytes), Bytes(0));
  EXPECT_EQ(curve[1].bytes[MemoryKind::kLent], Bytes(70));
}

TEST(SimulatedGroups, WorkersOfOneMachineLendToEachOtherAsWell) {
  const GroupChoice striped{.placement = Placement::kPeerSwap,
                            .stripes = {{DeviceId(1), Bytes(100)}}};
  SimulationInput input = TwoWorkers("0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0\n1F0 1B0\n",
                                     TwoGroups(striped));
  input.transport.rate = BytesPerSecond(20 * kGigabyte);
  EXPECT_THAT(CopiesText(Simulated(input)),
              testing::StartsWith("0SWAP_OUT0.0 [5,10) device 0, copies to and from device 1\n"
                                  "0SWAP_IN0.0 [10,15) device 0, copies to and from device 1\n"));
}

// A server with two devices and two drives, one of each at NUMA node 1.
Topology TwoDrives() {
  Topology topology = WithHost(UniformTopology(2, BytesPerSecond(kGigabyte), Nanos(0)), 2,
                               {.to_host = BytesPerSecond(20 * kGigabyte),
                                .from_host = BytesPerSecond(20 * kGigabyte),
                                .latency = Nanos(1)});
  topology.devices[1].numa = 1;
  const NvmeDrive drive{.capacity = Bytes(1000),
                        .read = BytesPerSecond(10 * kGigabyte),
                        .write = BytesPerSecond(5 * kGigabyte),
                        .latency = Nanos(2)};
  topology.drives = {drive, drive};
  topology.drives[0].numa = 1;
  return topology;
}

TEST(SimulatedGroups, ADriveIsReachedThroughTheHost) {
  SimulationInput input = TwoWorkers("0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0\n1F0 1B0\n",
                                     TwoGroups({.placement = Placement::kNvmeSwap}));
  input.topology = TwoDrives();
  const SimulatedStep step = Simulated(input);
  EXPECT_THAT(CopiesText(step),
              testing::StartsWith("0SWAP_OUT0.0 [5,28) device 0, copies to drive 1\n"
                                  "0SWAP_IN0.0 [28,41) device 0, copies from drive 1\n"));
  EXPECT_EQ(step.other_peaks, (std::vector<HolderPeak>{{"drive 1", Bytes(100)}}));
  EXPECT_EQ(step.host_peak, Bytes(0));
  std::vector<std::string> shared;
  for (const LaneTimeline& lane : step.lanes) {
    if (lane.intervals.empty() && lane.bytes > Bytes(0)) shared.push_back(lane.name);
  }
  EXPECT_THAT(shared, testing::ElementsAre("to host of switch 0", "from host of switch 0",
                                           "write to drive 1", "read from drive 1"));
}

std::string Refusal(const SimulationInput& input, absl::StatusCode code) {
  const absl::StatusOr<SimulatedStep> step = Simulate(input);
  if (step.ok()) return "it ran";
  EXPECT_EQ(step.status().code(), code) << step.status();
  return std::string(step.status().message());
}

TEST(SimulatedGroups, AFullDriveOrLenderIsNamed) {
  SimulationInput input = TwoWorkers("0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0\n1F0 1B0\n",
                                     TwoGroups({.placement = Placement::kNvmeSwap}));
  input.topology = TwoDrives();
  input.topology.drives[1].capacity = Bytes(99);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kResourceExhausted),
            "worker 0 has 0SWAP_OUT0.0, which asks for 100 B of activations, but drive 1 has 99 B "
            "free of 99 B (held: nothing)\n"
            "worker 0: 0SWAP_OUT0.0 <-- here 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0\n"
            "worker 1: 1F0 1B0");
  input.topology = UniformTopology(3, BytesPerSecond(10 * kGigabyte), Nanos(0));
  input.topology.devices[2].memory = Bytes(50);
  input.memory.stages[0].groups[0].choice = {.placement = Placement::kPeerSwap,
                                             .stripes = {{DeviceId(2), Bytes(100)}}};
  EXPECT_THAT(Refusal(input, absl::StatusCode::kResourceExhausted),
              testing::StartsWith("worker 0 has 0SWAP_OUT0.0, which asks for 100 B of lent "
                                  "memory, but device 2 has 50 B free of 50 B"));
}

TEST(SimulatedGroups, ManyMovesOfLargeGroupsAreNotTooMuch) {
  // 4 TiB of activations, swapped in two parts for each of 2,048 microbatches.
  std::string program;
  for (int microbatch = 0; microbatch < 2048; ++microbatch) {
    const std::string of = absl::StrCat(microbatch, ".");
    absl::StrAppend(&program, "0SWAP_OUT", of, "0 0SWAP_OUT", of, "1 0F", microbatch);
    absl::StrAppend(&program, " 0SWAP_OUT_END", of, "0 0SWAP_OUT_END", of, "1 0SWAP_IN", of);
    absl::StrAppend(&program, "0 0SWAP_IN", of, "1 0B", microbatch, " ");
  }
  SimulationInput input = TwoLayers(program, TwoGroups(kHost, kHost));
  const Bytes half(int64_t{1} << 41);
  for (int layer : {0, 1}) {
    input.layers[0][layer].stash = input.memory.stages[0].groups[layer].group.bytes = half;
  }
  input.stages[0].stash = half * 2;
  EXPECT_EQ(Simulated(input).host_peak, half * 2);
}

TEST(SimulatedGroups, PlansThatDoNotFitTheLayersAreRefused) {
  const auto refusal = [](auto change) {
    SimulationInput input = TwoLayers("0F0 0B0\n", TwoGroups(kHost));
    change(input);
    return Refusal(input, absl::StatusCode::kInvalidArgument);
  };
  const auto first = [](SimulationInput& input) -> PlannedGroup& {
    return input.memory.stages[0].groups[0];
  };
  EXPECT_EQ(refusal([](SimulationInput& input) { input.memory.stages.resize(2); }),
            "the memory plan has 2 stages, but the schedule has 1");
  EXPECT_EQ(refusal([](SimulationInput& input) { input.layers.clear(); }),
            "the memory plan has tensor groups in stage 0, but there are no costs of its layers");
  EXPECT_EQ(refusal([&](SimulationInput& input) {
              first(input).group.layers = {1, 3};
            }),
            "group 0 of stage 0 has layers 1 to 2, but the stage has 0 to 1");
  EXPECT_EQ(refusal([&](SimulationInput& input) {
              first(input).group.layers = {1, 2};
              first(input).group.bytes = Bytes(60);
            }),
            "group 1 of stage 0 has the activations of layer 1, which group 0 has");
  EXPECT_EQ(refusal([&](SimulationInput& input) { first(input).group.bytes = Bytes(99); }),
            "group 0 of stage 0 has 99 bytes of activations, but its layers save 100");
  EXPECT_EQ(refusal([&](SimulationInput& input) { first(input).group.input = Bytes(-1); }),
            "group 0 of stage 0 has a figure of -1; 0 is the least");
  EXPECT_EQ(refusal([&](SimulationInput& input) {
              first(input).choice.placement = Placement::kNvmeSwap;
            }),
            "group 0 of stage 0 is to go to an NVMe drive, but the topology has none");
  EXPECT_EQ(refusal([&](SimulationInput& input) {
              first(input).choice.stripes = {{DeviceId(1), Bytes(100)}};
            }),
            "group 0 of stage 0 has stripes, but is planned as host_swap");
  EXPECT_EQ(refusal([&](SimulationInput& input) {
              first(input).choice = {.placement = Placement::kPeerSwap,
                                     .stripes = {{DeviceId(0), Bytes(99)}}};
            }),
            "group 0 of stage 0 has stripes of 99 bytes together, but is of 100");
  EXPECT_EQ(refusal([&](SimulationInput& input) {
              first(input).choice = {.placement = Placement::kPeerSwap,
                                     .stripes = {{DeviceId(1), Bytes(100)}}};
            }),
            "group 0 of stage 0 has a stripe on device 1, but there is no such device");
  EXPECT_EQ(refusal([&](SimulationInput& input) {
              first(input).choice = {.placement = Placement::kPeerSwap,
                                     .stripes = {{DeviceId(0), Bytes(100)}}};
              input.schedule = ParsedSchedule("0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0");
            }),
            "device 0 cannot lend to device 0: lenders are the devices of other workers");
}

}  // namespace
}  // namespace siphon
