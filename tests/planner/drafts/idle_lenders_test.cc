// Devices without a worker lend what they have, and no more.
#include <gtest/gtest.h>

#include "planner/drafts/draft_simulator.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// TwoWorkers and a third device with so much memory. Worker 1 needs 20 of its 35 bytes.
PlanningProblem WithIdleDevice(Bytes memory) {
  Topology topology = UniformTopology(3, kByteANano, Nanos(0));
  for (TopologyLink& link : topology.links) link.wires = 1;
  for (TopologyDevice& device : topology.devices) device.memory = Bytes(100);
  topology.devices[2].memory = memory;
  return TwoWorkers(topology);
}

// Of worker 0 so many layers of 10 bytes, for two microbatches each.
DraftPlan ParkedLayers(const PlanningProblem& problem, int layers) {
  DraftPlan draft = KeepingDraft(problem);
  for (int layer = 0; layer < layers; ++layer) {
    draft.stages[0].activations[layer] = Placement::kPeerSwap;
  }
  return draft;
}

TEST(IdleLenders, AreTooFullRatherThanAnError) {
  PlanningProblem problem = WithIdleDevice(Bytes(6));
  problem.capacity[0] = Bytes(50);
  DraftSimulator simulator(problem);
  // Of 10 bytes 7 are with worker 1 and 3 with device 2, of two microbatches at once.
  const auto one = simulator.Run(ParkedLayers(problem, 1));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(Fits(*one)) << FormatBytes(one->score.excess);
  EXPECT_EQ(PeakOfIdleDevice(one->simulated, DeviceId(2)), Bytes(6));
  const auto both = simulator.Run(ParkedLayers(problem, 2));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_FALSE(Fits(*both));
}

TEST(IdleLenders, DoNotEndASearchThatBeginsWithAllLayers) {
  const PlanningProblem problem = WithIdleDevice(Bytes(6));
  const auto planned = PlanPeerSwap(problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_LE(PeakOfIdleDevice(planned->simulated, DeviceId(2)), Bytes(6));
}

TEST(IdleLenders, LendLessWhereWholeGranulesFillThem) {
  // Of 10 bytes in granules of 4 the last lender takes 6, for two microbatches 12.
  PlanningProblem problem = WithIdleDevice(Bytes(8));
  problem.granule = Bytes(4);
  problem.capacity = {Bytes(50), Bytes(60)};
  DraftSimulator simulator(problem);
  const auto run = simulator.Run(ParkedLayers(problem, 1));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(Fits(*run)) << FormatBytes(run->score.excess);
  EXPECT_LE(PeakOfIdleDevice(run->simulated, DeviceId(2)), Bytes(8));
}

}  // namespace
}  // namespace siphon
