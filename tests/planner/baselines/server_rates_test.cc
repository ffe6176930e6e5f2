#include "planner/baselines/server_rates.h"

#include <gtest/gtest.h>

#include "tests/planner/baselines/baseline_machines.h"

namespace siphon {
namespace {

TEST(ServerRates, ShareUplinksAndSumLinks) {
  Topology topology = ByteANanoServer(4, 2);
  for (PcieSwitch& uplink : topology.switches) uplink.to_host_both = BytesPerSecond(600'000'000);
  topology.drives = {{.read = BytesPerSecond(3), .write = BytesPerSecond(2)},
                     {.read = BytesPerSecond(4), .write = BytesPerSecond(1)}};
  const ServerRates rates = RatesOf(topology).value();
  EXPECT_EQ(rates.devices, 4);
  EXPECT_EQ(rates.to_host, BytesPerSecond(500'000'000));
  EXPECT_EQ(rates.from_host, BytesPerSecond(500'000'000));
  EXPECT_EQ(rates.to_host_both, BytesPerSecond(300'000'000));
  EXPECT_EQ(rates.from_host_both, BytesPerSecond(500'000'000));
  EXPECT_EQ(rates.collective, BytesPerSecond(3'000'000'000));
  EXPECT_EQ(rates.drives_read, BytesPerSecond(7));
  EXPECT_EQ(rates.drives_write, BytesPerSecond(3));
}

TEST(ServerRates, AreThoseOfTheWorstOffDevice) {
  Topology topology = ByteANanoServer(4, 1);
  topology.devices[2].ingress = BytesPerSecond(700'000'000);
  topology.switches[3].from_host = BytesPerSecond(1'000);
  const ServerRates rates = RatesOf(topology).value();
  EXPECT_EQ(rates.collective, BytesPerSecond(700'000'000));
  EXPECT_EQ(rates.from_host, BytesPerSecond(1'000));
}

TEST(ServerRates, SumThroughTheHostWithoutLinks) {
  Topology topology = ByteANanoServer(4, 2);
  topology.links.clear();
  EXPECT_EQ(RatesOf(topology).value().collective, BytesPerSecond(500'000'000));
}

TEST(TimeFor, RoundsUpAndKnowsNoLimit) {
  EXPECT_EQ(TimeFor(Bytes(10), BytesPerSecond(3'000'000'000)), Nanos(4));
  EXPECT_EQ(TimeFor(Bytes(10), BytesPerSecond(0)), Nanos(0));
}

}  // namespace
}  // namespace siphon
