#include "planner/mapping/swap_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

using testing::Each;

TEST(SwapFabric, IsAsFastAsTheSlowerDirection) {
  Topology topology;
  topology.devices.resize(3);
  topology.devices[0] = {.egress = BytesPerSecond(100), .ingress = BytesPerSecond(90)};
  topology.devices[1] = {.ingress = BytesPerSecond(50)};
  Link(topology, 0, 1, 2, 24);
  topology.links[1].rate = BytesPerSecond(38);
  topology.links.push_back({.from = DeviceId(1), .to = DeviceId(2), .rate = BytesPerSecond(9)});
  const SwapFabric fabric = MakeSwapFabric(topology);
  EXPECT_EQ(fabric.rate[0][1], 38);
  EXPECT_EQ(fabric.rate[1][0], 38);
  EXPECT_EQ(fabric.rate[1][2], 0);  // no way back
  EXPECT_EQ(fabric.cap, (std::vector<int64_t>{90, 50, SwapFabric::kUnlimited}));
  EXPECT_TRUE(fabric.Linked(0, 1));
  EXPECT_FALSE(fabric.Linked(1, 2));
}

// 8.8 GB/s between devices, 12.3 to the host: half of it, or a quarter, when all copy.
TEST(SwapFabric, LendsOverPcieOnlyWhereThatBeatsTheSharedUplink) {
  for (const int devices : {1, 2, 4}) {
    Topology topology;
    topology.devices.resize(devices + 1);
    Link(topology, 0, devices, 1, 8'800'000'000);
    for (TopologyLink& link : topology.links) link.wires = 0;
    topology = WithHost(std::move(topology), devices, {.to_host = BytesPerSecond(12'300'000'000)});
    const SwapFabric fabric = MakeSwapFabric(topology);
    EXPECT_EQ(fabric.rate[0][devices], devices == 1 ? 0 : 8'800'000'000) << devices;
    EXPECT_EQ(fabric.rate[devices][0], 0) << "alone on its uplink";
  }
}

TEST(SwapFabric, LendsOverNvlinkHoweverSlowItIs) {
  Topology topology;
  topology.devices.resize(2);
  Link(topology, 0, 1, 1, 5);
  topology = WithHost(std::move(topology), 2, {.to_host = BytesPerSecond(12)});
  EXPECT_EQ(MakeSwapFabric(topology).rate[0][1], 5);
  for (TopologyLink& link : topology.links) link.wires = 0;
  EXPECT_EQ(MakeSwapFabric(topology).rate[0][1], 0);
  topology.switches[0].to_host = BytesPerSecond(0);  // not known
  topology.switches[0].from_host = BytesPerSecond(0);
  EXPECT_EQ(MakeSwapFabric(topology).rate[0][1], 5);
}

TEST(SwapFabric, AsATopologyKeepsWhatLends) {
  Topology topology = WithHost(Dgx1V(), 2, {.to_host = BytesPerSecond(11'700'000'000)});
  topology.links.push_back({DeviceId(0), DeviceId(5), BytesPerSecond(1), Nanos(9), 0});
  topology.links.push_back({DeviceId(5), DeviceId(0), BytesPerSecond(1), Nanos(9), 0});
  EXPECT_EQ(LendingTopology(topology), Dgx1V());
}

TEST(TransferTime, RoundsUpAndEndsAtTheLongestTime) {
  EXPECT_EQ(TransferTime(Bytes(10), 3'000'000'000), Nanos(4));
  EXPECT_EQ(TransferTime(Bytes(0), 1), Nanos(0));
  EXPECT_EQ(TransferTime(Bytes(7), SwapFabric::kUnlimited), Nanos(0));
  EXPECT_EQ(TransferTime(Bytes(int64_t{1} << 60), 1), Nanos(int64_t{1} << 62));
}

}  // namespace
}  // namespace siphon
