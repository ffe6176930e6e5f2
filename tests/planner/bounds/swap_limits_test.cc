#include "planner/bounds/facts/swap_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

BytesPerSecond GigaBytes(int64_t giga) { return BytesPerSecond(giga * 1'000'000'000); }

// Devices 0 -> 1 at 20 GB/s, 0 -> 2 at 10; device 2 leads nowhere; 0 and 1 share an uplink.
PlanningProblem ThreeDevices() {
  PlanningProblem problem = ProblemOf(ScheduleOf("1f1b", 2, 2), PlainLayer(), Bytes(0));
  problem.topology = Islands(3);
  problem.topology.devices[1].memory = Bytes(5);
  problem.topology.devices[2].memory = Bytes(7);
  problem.topology.links = {
      {.from = DeviceId(0), .to = DeviceId(1), .rate = GigaBytes(20), .latency = Nanos(3)},
      {.from = DeviceId(0), .to = DeviceId(2), .rate = GigaBytes(10), .latency = Nanos(9)}};
  problem.topology.switches = {{.devices = {DeviceId(0), DeviceId(1)},
                                .to_host = GigaBytes(12),
                                .from_host = GigaBytes(11),
                                .to_host_both = GigaBytes(8)}};
  return problem;
}

TEST(SwapLimits, OfAMapAreThoseOfItsDevices) {
  PlanningProblem problem = ThreeDevices();
  problem.mapping = DeviceMapping{{DeviceId(1), DeviceId(0)}};
  const SwapLimits limits = SwapLimitsOf(problem);
  // From 1 back to 0 it goes through the host.
  EXPECT_THAT(limits.link_out, testing::ElementsAre(GigaBytes(11), GigaBytes(30)));
  EXPECT_THAT(limits.link_in, testing::ElementsAre(GigaBytes(20), GigaBytes(11)));
  const UplinkRates uplink{GigaBytes(12), GigaBytes(11), GigaBytes(8), GigaBytes(11)};
  EXPECT_THAT(limits.uplink, testing::ElementsAre(uplink, uplink));
  EXPECT_THAT(limits.shared,
              testing::ElementsAre(SharedUplinks{"the uplink of switch 0", {0, 1}, {uplink}}));
  EXPECT_EQ(limits.idle_memory, Bytes(7));
  // Worker 0 to 1 goes by the host, there and back 11 GB/s at most; back there is a link.
  EXPECT_EQ(LeastMessageTime(limits.ways[0][1], Bytes(1'100)), Nanos(100));
  EXPECT_EQ(LeastMessageTime(limits.ways[1][0], Bytes(1'000)), Nanos(53));
}

TEST(SwapLimits, WithoutAMapAreTheBestOfAllDevices) {
  PlanningProblem problem = ThreeDevices();
  problem.topology.devices[0].memory = Bytes(6);
  const SwapLimits limits = SwapLimitsOf(problem);
  EXPECT_THAT(limits.link_out, testing::ElementsAre(GigaBytes(30), GigaBytes(30)));
  EXPECT_THAT(limits.link_in, testing::ElementsAre(GigaBytes(20), GigaBytes(20)));
  EXPECT_EQ(limits.idle_memory, Bytes(7));  // the largest that one idle device can have
  EXPECT_EQ(LeastMessageTime(limits.ways[0][1], Bytes(1'000)), Nanos(53));
}

TEST(SwapLimits, OfOneCopyEngineAreItsFastestLink) {
  PlanningProblem problem = ThreeDevices();
  problem.topology.copy_engines = CopyEngines::kOneForAllPeers;
  EXPECT_EQ(SwapLimitsOf(problem).link_out[0], GigaBytes(20));
  problem.topology.devices[0].egress = GigaBytes(15);
  EXPECT_EQ(SwapLimitsOf(problem).link_out[0], GigaBytes(15));
}

TEST(SwapLimits, HaveNoLimitWhereATopologyKnowsNone) {
  PlanningProblem problem = ThreeDevices();
  problem.topology.links[0].rate = BytesPerSecond(0);
  problem.topology.devices[2].memory = Bytes(0);
  EXPECT_EQ(SwapLimitsOf(problem).link_out[0], kUnlimitedRate);
  EXPECT_EQ(SwapLimitsOf(problem).idle_memory, kUnlimitedBytes);
  EXPECT_EQ(BytesMoved(kUnlimitedRate, Nanos(1'000'000'000'000)), kUnlimitedBytes);
}

TEST(SwapLimits, AreNoneWithoutLinksAndHost) {
  PlanningProblem problem = ThreeDevices();
  problem.topology = Islands(2);
  const SwapLimits limits = SwapLimitsOf(problem);
  EXPECT_EQ(limits.link_out[0], BytesPerSecond(0));
  EXPECT_EQ(limits.uplink[0], UplinkRates{});
  EXPECT_EQ(LeastMessageTime(limits.ways[0][1], Bytes(1'000)), Nanos(0));
}

}  // namespace
}  // namespace siphon
