#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/simulator/two_layers.h"

namespace siphon {
namespace {

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

// The first group is there while the second is made, and waited for then; the second one at the
// end. Both come in under the backward, the first one while it is at the second one's layer.
TEST(SimulatedGroups, StreamUnderTheirForwardAndTheirBackward) {
  const SimulatedStep step =
      Simulated(TwoLayers("0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_OUT0.1 0SWAP_OUT_END0.1 0F0 0B0\n",
                          TwoGroups(kHost, kHost)));
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT0.0 [5,15) device 0, copies to host\n"
            "0SWAP_OUT0.1 [15,21) device 0, copies to host\n"
            "0B0 [21,27) device 0, copies from host\n"
            "0B0 [27,37) device 0, copies from host\n");
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "wait 0F0 [10,15) worker 0\n"
            "wait 0F0 [15,21) worker 0\n"
            "wait 0B0 [21,27) worker 0\n"
            "0B0 [27,47) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: activations 100\n"
            "5: activations 160\n"
            "15: activations 60\n"
            "21: activations 60\n"
            "27: activations 160\n"
            "37: activations 100\n"
            "47:\n");
  EXPECT_EQ(WaitForSwaps(step, 0), Nanos(17));
}

// With one buffer each comes in only when the backward is at its layer; of those that leave the one
// whose END stands behind the forward is not waited for.
TEST(SimulatedGroups, StreamAsFewAtOnceAsTold) {
  SimulationInput input =
      TwoLayers("0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_OUT0.1 0F0 0F1 0SWAP_OUT_END0.1 0B1 0B0\n",
                TwoGroups(kHost, kHost));
  input.memory.stages[0].stream_buffers = 1;
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT0.0 [5,15) device 0, copies to host\n"
            "0SWAP_OUT0.1 [15,21) device 0, copies to host\n"
            "0B0 [45,51) device 0, copies from host\n"
            "0B0 [61,71) device 0, copies from host\n");
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "wait 0F0 [10,15) worker 0\n"
            "0F1 [15,25) worker 0\n"
            "0B1 [25,45) worker 0\n"
            "wait 0B0 [45,51) worker 0\n"
            "0B0 [51,61) worker 0\n"
            "wait 0B0 [61,71) worker 0\n"
            "0B0 [71,81) worker 0\n");
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
                                     .stripes = {{DeviceId(1), Bytes(100)}}};
              input.topology = UniformTopology(2, BytesPerSecond(kGigabyte), Nanos(0));
              input.topology.links.pop_back();
            }),
            "group 0 of stage 0 has a stripe on device 1, which no link joins both ways with "
            "device 0, where the stage is");
  EXPECT_EQ(refusal([&](SimulationInput& input) {
              first(input).choice = {.placement = Placement::kPeerSwap,
                                     .stripes = {{DeviceId(0), Bytes(100)}}};
              input.schedule = ParsedSchedule("0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0");
            }),
            "device 0 cannot lend to device 0: lenders are the devices of other workers");
}

}  // namespace
}  // namespace siphon
