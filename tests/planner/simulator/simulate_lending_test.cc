// Groups that go to lenders and to drives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/simulator/two_layers.h"

namespace siphon {
namespace {

// Worker 0 as above, worker 1 with one layer like its two together.
SimulationInput TwoWorkers(absl::string_view schedule, std::vector<PlannedGroup> groups) {
  SimulationInput input = TwoLayers(schedule, std::move(groups));
  input.layers.push_back({LayerOf(input.stages[1])});
  input.memory.stages.resize(2);
  return input;
}

TEST(SimulatedLending, ABackwardWaitsForItsGradientFirst) {
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

TEST(SimulatedLending, StripesGoToAllLendersAtOnce) {
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

TEST(SimulatedLending, WorkersOfOneMachineLendToEachOtherAsWell) {
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

TEST(SimulatedLending, ADriveIsReachedThroughTheHost) {
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

TEST(SimulatedLending, AFullDriveOrLenderIsNamed) {
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

}  // namespace
}  // namespace siphon
