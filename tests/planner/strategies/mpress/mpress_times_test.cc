#include "planner/strategies/mpress/mpress_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/lowering/make_groups.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/simulator/simulate.h"
#include "tests/planner/strategies/mpress/mpress_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

// Two layers a stage:
//   worker 0: F0 [0,20)  F1 [20,40)              B0 [80,120)             B1 [140,180)
//   worker 1:            F0 [20,40) B0 [40,80)   F1 [80,100) B1 [100,140)
// Stage 0 is left for 60 ns by microbatch 0, for 100 by microbatch 1; stage 1 not at all.
TEST(LiveIntervals, AreTheShortestBetweenForwardAndBackward) {
  const PlanningProblem problem = EqualLayers(2, 2, 2);
  const MemoryPlan plan = KeepEverything(problem.profile, problem.partition);
  const SimulatedStep step =
      Simulate(SimulationOf(problem, IdentityMapping(2), {}, problem.schedule)).value();
  ASSERT_EQ(step.step_time, Nanos(180));
  const auto intervals = LiveIntervals(problem, plan, step);
  ASSERT_EQ(intervals.size(), 2u);
  // A stage's first layer is through 10 ns earlier and wanted 20 ns later. Then parameters,
  // gradients, optimizer state.
  const Nanos all(180);
  EXPECT_THAT(intervals[0], ElementsAre(Nanos(90), Nanos(60), all, all, all, all, all, all));
  EXPECT_THAT(intervals[1], ElementsAre(Nanos(30), Nanos(0), all, all, all, all, all, all));
}

TEST(RoundTrip, IsTwoCopies) {
  const SwapPath out{BytesPerSecond(1'000'000'000), Nanos(5)};
  const SwapPath in{BytesPerSecond(500'000'000), Nanos(6)};
  EXPECT_EQ(RoundTrip(Bytes(100), out, in), Nanos(100 + 5 + 200 + 6));
  EXPECT_EQ(RoundTrip(Bytes(100), {}, in), Nanos(206));
}

// 12 bytes a second alone; 6 out and 4 in while both run.
TEST(UplinkTime, IsThatOfTheSlowerDirectionWhileBothRun) {
  PlanningProblem problem = EqualLayers(2, 1, 2);
  problem.topology = WithHost(UniformTopology(2, BytesPerSecond(1), Nanos(0)), 2,
                              {.to_host = BytesPerSecond(12),
                               .from_host = BytesPerSecond(12),
                               .to_host_both = BytesPerSecond(6),
                               .from_host_both = BytesPerSecond(4),
                               .latency = Nanos(3)});
  EXPECT_EQ(UplinkTime(problem, DeviceId(1), Bytes(12)), Nanos(3'000'000'003));
  problem.topology.switches[0].from_host_both = BytesPerSecond(0);
  EXPECT_EQ(UplinkTime(problem, DeviceId(1), Bytes(12)), Nanos(2'000'000'003));
}

// Device 0 has NVLink to 1, PCIe to 2 (faster than the 12 that the uplink leaves each of five) and
// to 3 (slower), and 1 to 4 only.
TEST(PeerPaths, AreNvlinkNeighboursAndPcieFasterThanItsShareOfTheUplink) {
  PlanningProblem problem = EqualLayers(2, 1, 2);
  problem.topology = WithHost(UniformTopology(5, BytesPerSecond(1), Nanos(0)), 5,
                              {.to_host = BytesPerSecond(70), .from_host = BytesPerSecond(60)});
  std::vector<TopologyLink>& links = problem.topology.links;
  links.clear();
  const auto link = [&](int a, int b, int64_t rate, int wires) {
    links.push_back({DeviceId(a), DeviceId(b), BytesPerSecond(rate), Nanos(1), wires});
    links.push_back({DeviceId(b), DeviceId(a), BytesPerSecond(rate), Nanos(1), wires});
  };
  link(0, 1, 10, 1);
  link(0, 2, 13, 0);
  link(0, 3, 11, 0);
  link(1, 4, 50, 2);
  const std::vector<PeerPath> peers = PeerPathsOf(problem, DeviceId(0));
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[0].lender, DeviceId(1));
  EXPECT_EQ(peers[1].lender, DeviceId(2));
  EXPECT_EQ(peers[1].out.rate, BytesPerSecond(13));
  EXPECT_EQ(HostPathsOf(problem, DeviceId(3))->in.rate, BytesPerSecond(60));
  // The same pairs as for all other strategies.
  const SwapFabric fabric = MakeSwapFabric(problem.topology);
  for (int owner = 0; owner < 5; ++owner) {
    std::vector<int> lenders;
    for (int lender = 0; lender < 5; ++lender) {
      if (fabric.rate[owner][lender] > 0) lenders.push_back(lender);
    }
    std::vector<int> reached;
    for (const PeerPath& path : PeerPathsOf(problem, DeviceId(owner))) {
      reached.push_back(path.lender.value);
    }
    EXPECT_EQ(reached, lenders) << "owner " << owner;
  }
}

}  // namespace
}  // namespace siphon
