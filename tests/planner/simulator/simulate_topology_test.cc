#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

PcieSwitch Uplink(int64_t alone, int64_t both) {
  return {.to_host = BytesPerSecond(alone * kGigabyte),
          .from_host = BytesPerSecond(alone * kGigabyte),
          .to_host_both = BytesPerSecond(both * kGigabyte),
          .from_host_both = BytesPerSecond(both * kGigabyte)};
}

const LaneTimeline* FindLane(const SimulatedStep& step, absl::string_view name) {
  for (const LaneTimeline& lane : step.lanes) {
    if (lane.name == name) return &lane;
  }
  return nullptr;
}

Nanos EndOfOnly(const SimulatedStep& step, absl::string_view name) {
  const LaneTimeline* lane = FindLane(step, name);
  EXPECT_NE(lane, nullptr) << name;
  return lane != nullptr && lane->intervals.size() == 1 ? lane->intervals[0].end : Nanos(-1);
}

// Two workers, each of which swaps out 1200 bytes behind its forward of 10 ns; stage 1 starts
// at 10.
SimulationInput TwoSwappers() {
  StageCost cost = TenNanos();
  cost.stash = Bytes(1200);
  return EqualStages(ParsedSchedule("0F0 0SWAP_OUT0 0SWAP_OUT_END0 0SWAP_IN0 0SWAP_IN_END0 0B0\n"
                                    "1F0 1SWAP_OUT0 1SWAP_OUT_END0 1SWAP_IN0 1SWAP_IN_END0 1B0\n"),
                     cost);
}

TEST(SimulatedTopology, DevicesBehindDifferentSwitchesDoNotMeet) {
  SimulationInput input = TwoSwappers();
  input.topology = WithHost(UniformTopology(2, {}, {}), 1, Uplink(12, 12));
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(EndOfOnly(step, "device 0, copies to host"), Nanos(110));
  EXPECT_EQ(EndOfOnly(step, "device 1, copies to host"), Nanos(120));
}

TEST(SimulatedTopology, TwoDevicesBehindOneSwitchShareItsUplink) {
  SimulationInput input = TwoSwappers();
  input.topology = WithHost(UniformTopology(2, {}, {}), 2, Uplink(12, 12));
  const SimulatedStep step = Simulated(input);
  // Device 0 alone from 10 to 20: 120 bytes. Then 6 GB/s each: its other 1080 bytes by 200. Device
  // 1 has moved as many by then; its last 120 bytes alone by 210, as the way back is as fast.
  EXPECT_EQ(EndOfOnly(step, "device 0, copies to host"), Nanos(200));
  EXPECT_EQ(EndOfOnly(step, "device 1, copies to host"), Nanos(210));
  EXPECT_EQ(FindLane(step, "to host of switch 0")->bytes, Bytes(2400));
  EXPECT_EQ(FindLane(step, "to host of switch 0")->busy, Nanos(200));
}

TEST(SimulatedTopology, BothDirectionsOfAnUplinkSlowEachOther) {
  SimulationInput input = TwoSwappers();
  input.topology = WithHost(UniformTopology(2, {}, {}), 2, Uplink(12, 8));
  const SimulatedStep step = Simulated(input);
  // Out of device 0 ends at 200 as above. Then device 0 comes back while device 1's last 120 bytes
  // go out, each direction at 8 GB/s: 15 ns, in which device 0 gets 120 of its 1200. Then both come
  // in: 12 GB/s shared by two.
  EXPECT_EQ(EndOfOnly(step, "device 0, copies to host"), Nanos(200));
  EXPECT_EQ(EndOfOnly(step, "device 1, copies to host"), Nanos(215));
  EXPECT_EQ(EndOfOnly(step, "device 0, copies from host"), Nanos(395));
  EXPECT_EQ(EndOfOnly(step, "device 1, copies from host"), Nanos(405));
}

TEST(SimulatedTopology, MessagesTakeTheirLinksRateAndLatency) {
  StageCost cost = TenNanos();
  cost.output = Bytes(100);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n1F0 1B0\n"), cost);
  input.topology = UniformTopology(3, BytesPerSecond(5 * kGigabyte), Nanos(3));
  input.device_of_worker = {DeviceId(2), DeviceId(0)};
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(step.workers[1][0].end, Nanos(33));  // waited for 10 + 3 + 20
  EXPECT_EQ(FindLane(step, "device 2 to device 0")->bytes, Bytes(100));
  EXPECT_EQ(FindLane(step, "device 2 to device 0")->busy, Nanos(20));
}

TEST(SimulatedTopology, WithoutALinkMessagesGoThroughTheHost) {
  StageCost cost = TenNanos();
  cost.output = Bytes(120);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n1F0 1B0\n"), cost);
  Topology apart{.devices = std::vector<TopologyDevice>(2)};
  input.topology = WithHost(apart, 1, Uplink(12, 12));
  input.topology.switches[0].latency = Nanos(2);
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(step.workers[1][0].end, Nanos(22));
  EXPECT_EQ(FindLane(step, "to host of switch 0")->bytes, Bytes(120));
  EXPECT_EQ(FindLane(step, "from host of switch 1")->bytes, Bytes(120));
}

// Worker 0 of three swaps 1000 bytes to the two others, half each.
SimulationInput Striped(Topology topology) {
  StageCost cost = TenNanos();
  cost.stash = Bytes(1000);
  SimulationInput input =
      EqualStages(ParsedSchedule("0F0 0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0SWAP_IN_END0.0 "
                                 "0B0\n1F0 1B0\n2F0 2B0\n"),
                  cost);
  input.topology = std::move(topology);
  input.layers.assign(3, {LayerOf(cost)});
  input.memory.stages.resize(3);
  input.memory.stages[0].groups = {
      {{.layers = {0, 1}, .bytes = Bytes(1000)},
       {.placement = Placement::kPeerSwap,
        .stripes = {{DeviceId(1), Bytes(500)}, {DeviceId(2), Bytes(500)}}}}};
  return input;
}

TEST(SimulatedTopology, OneCopyEnginePerPeerMultipliesTheRate) {
  const SimulatedStep step =
      Simulated(Striped(UniformTopology(3, BytesPerSecond(10 * kGigabyte), Nanos(0))));
  EXPECT_EQ(FindLane(step, "device 0, copies to and from device 1")->intervals[0].end, Nanos(60));
  EXPECT_EQ(FindLane(step, "device 0, copies to and from device 2")->intervals[0].end, Nanos(60));
  EXPECT_EQ(FindLane(step, "device 0, copies to and from device 2")->intervals[1].end, Nanos(110));
}

TEST(SimulatedTopology, OneCopyEngineForAllPeersOnlySpreadsTheBytes) {
  const SimulatedStep step =
      Simulated(Striped(NvswitchTopology(3, BytesPerSecond(10 * kGigabyte), Nanos(0))));
  const LaneTimeline* engine = FindLane(step, "device 0, copies to and from peers");
  ASSERT_NE(engine, nullptr);
  ASSERT_EQ(engine->intervals.size(), 4);
  EXPECT_EQ(engine->intervals[1].end, Nanos(110));
  EXPECT_EQ(engine->intervals[3].end, Nanos(210));
}

TEST(SimulatedTopology, TheEgressCapLimitsAllPeersTogether) {
  Topology topology = UniformTopology(3, BytesPerSecond(10 * kGigabyte), Nanos(0));
  topology.devices[0].egress = BytesPerSecond(12'500'000'000);
  const SimulatedStep step = Simulated(Striped(topology));
  // Out: 1000 bytes at 12.5 GB/s instead of 20: 80 ns. In: 20 GB/s.
  EXPECT_EQ(FindLane(step, "device 0, copies to and from device 1")->intervals[0].end, Nanos(90));
  EXPECT_EQ(FindLane(step, "device 0, copies to and from device 1")->intervals[1].end, Nanos(140));
}

TEST(SimulatedTopology, LendersCountWhatTheyLend) {
  SimulationInput input = Striped(UniformTopology(3, BytesPerSecond(10 * kGigabyte), Nanos(0)));
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(Total(step.peak[2]), Bytes(1500));  // its own 1000 from 20 to 50, and 500 lent
  EXPECT_EQ(step.host_peak, Bytes(0));
  input.capacity = {Bytes(0), Bytes(0), Bytes(1200)};
  const absl::StatusOr<SimulatedStep> refused = Simulate(input);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(),
            "worker 2 has 2F0, which asks for 1000 B of activations, but it has 700 B free of "
            "1.17 KiB (held: lent 500 B)\n"
            "worker 0: 0F0 0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_IN0.0 0SWAP_IN_END0.0 0B0\n"
            "worker 1: 1F0 1B0\n"
            "worker 2: 2F0 <-- here 2B0");
}

// Two servers of two devices. Worker 0 and 1 are in the first, worker 2 in the second. What goes
// between them takes the network, 4 GB/s out of a server and into it, and 7 ns.
Topology TwoServers() {
  Topology server =
      WithHost(UniformTopology(2, BytesPerSecond(10 * kGigabyte), Nanos(1)), 1, Uplink(10, 10));
  server.host_memory = Bytes(2000);
  return SeveralServers(server, 2, {BytesPerSecond(4 * kGigabyte), Nanos(7)});
}

TEST(SimulatedTopology, MessagesBetweenServersTakeTheNetwork) {
  StageCost cost = TenNanos();
  cost.output = Bytes(100);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0SEND_F0 0F1 0SEND_F1\n"
                                                     "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1\n"
                                                     "2RECV_F0 2F0 2RECV_F1 2F1\n"),
                                      cost);
  input.topology = TwoServers();
  input.device_of_worker = {DeviceId(0), DeviceId(1), DeviceId(2)};
  const SimulatedStep step = Simulated(input);
  // 100 bytes at 10 GB/s and 1 ns within a server, at 4 GB/s and 7 ns between two, each from when
  // both are there: 11 and 32 ns.
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0F1 [10,20) worker 0\n"
            "wait 1F0 [0,21) worker 1\n"
            "1F0 [21,31) worker 1\n"
            "wait 1F1 [31,42) worker 1\n"
            "1F1 [42,52) worker 1\n"
            "wait 2F0 [0,63) worker 2\n"
            "2F0 [63,73) worker 2\n"
            "wait 2F1 [73,105) worker 2\n"
            "2F1 [105,115) worker 2\n");
}

TEST(SimulatedTopology, DevicesLendWithinTheirServer) {
  SimulationInput input = Striped(TwoServers());
  input.device_of_worker = {DeviceId(0), DeviceId(1), DeviceId(2)};
  const absl::StatusOr<SimulatedStep> refused = Simulate(input);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("device 2 cannot lend to device 0: it is in another server"));
  input.device_of_worker = {DeviceId(2), DeviceId(0), DeviceId(1)};
  input.memory.stages[0].groups[0].choice.stripes = {{DeviceId(3), Bytes(1000)}};
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(step.other_peaks, (std::vector<HolderPeak>{{"device 3", Bytes(1000)}}));
}

TEST(SimulatedTopology, EachServersHostIsCountedByItself) {
  SimulationInput input = TwoSwappers();
  input.topology = TwoServers();
  input.device_of_worker = {DeviceId(0), DeviceId(2)};
  EXPECT_EQ(Simulated(input).host_peak, Bytes(1200));
  input.device_of_worker = {DeviceId(3), DeviceId(2)};
  const absl::StatusOr<SimulatedStep> refused = Simulate(input);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()),
              testing::StartsWith(
                  "worker 1 has 1SWAP_OUT0, which asks for 1.17 KiB of activations, but the host "
                  "of server 1 has 800 B free of 1.95 KiB"));
}

TEST(SimulatedTopology, TheHostsMemoryIsCounted) {
  SimulationInput input = TwoSwappers();
  input.topology = WithHost(UniformTopology(2, {}, {}), 1, Uplink(12, 12));
  input.topology.host_memory = Bytes(2000);
  const absl::StatusOr<SimulatedStep> refused = Simulate(input);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              testing::StartsWith("worker 1 has 1SWAP_OUT0, which asks for 1.17 KiB of "
                                  "activations, but the host has 800 B free of 1.95 KiB"));
}

}  // namespace
}  // namespace siphon
