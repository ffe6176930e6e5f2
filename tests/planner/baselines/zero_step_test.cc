#include "planner/baselines/zero_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/baselines/baseline_machines.h"

namespace siphon {
namespace {

using testing::HasSubstr;

// Two layers (0, 1) on two devices; each gather, sum and copy takes 50 ns.
//   fabric   G0 [0,50)  G1 [50,100)  G1 [100,150)  G0 [150,200)  S1 [200,250)  S0 [250,300)
//   compute  F0 [50,60) F1 [100,110) B1 [150,170)  B0 [200,220)
//   to host  1 [250,300) 0 [300,350)
//   Adam     0 [350,370) 1 [370,390)
//   back     0 [370,420) 1 [420,470)
TEST(ZeroOffloadStep, IsAsDrawn) {
  const BaselineStep step = ZeroOffloadStep(SmallBaseline(2, 2)).value();
  EXPECT_EQ(step.step_time, Nanos(470));
  EXPECT_EQ(step.computing, Nanos(60));
  EXPECT_FALSE(step.recomputes);
  // Its half of the weights, two layers' weights and gradients, what both layers saved.
  EXPECT_EQ(step.device, Bytes(100 + 200 + 200 + 100));
  EXPECT_EQ(step.host, Bytes(200 + 1200));
  EXPECT_EQ(step.drives, Bytes(0));
  EXPECT_EQ(step.to_host, Bytes(200));
  EXPECT_EQ(step.from_host, Bytes(200));
}

// As above, with each device's half of a layer fetched before it is gathered:
//   from host  0 [0,50)   1 [50,100)   1 [110,160)  0 [160,210)
//   fabric     G0 [50,100) G1 [100,150) G1 [160,210) G0 [210,260) S1 [260,310) S0 [310,360)
//   to host    1 [310,360) 0 [360,410)
//   Adam       [410,450)
TEST(ZeroInfinityStep, FetchesWeightsForEachPass) {
  const BaselineStep step = ZeroInfinityStep(SmallBaseline(2, 2)).value();
  EXPECT_EQ(step.step_time, Nanos(450));
  EXPECT_EQ(step.device, Bytes(200 + 200 + 100));
  EXPECT_EQ(step.host, Bytes(200 + 200 + 1200));
  EXPECT_EQ(step.from_host, Bytes(400));
}

//   read   0 [410,1010)  1 [1010,1610)
//   Adam   0 [1010,1030) 1 [1610,1630)
//   write  0 [1030,1630) 1 [1630,2230)
TEST(ZeroInfinityNvmeStep, ReadsAndWritesTheState) {
  BaselineProblem problem = SmallBaseline(2, 2);
  problem.topology.drives = {{.capacity = kAmple, .read = kByteANano, .write = kByteANano}};
  const BaselineStep step = ZeroInfinityNvmeStep(problem).value();
  EXPECT_EQ(step.step_time, Nanos(2230));
  EXPECT_EQ(step.host, Bytes(400));
  EXPECT_EQ(step.drives, Bytes(1200));
}

TEST(ZeroInfinityNvmeStep, NeedsDrives) {
  EXPECT_TRUE(absl::IsResourceExhausted(ZeroInfinityNvmeStep(SmallBaseline(2, 2)).status()));
}

// The host has room for one layer's state:
//   read   1 [410,1010)
//   Adam   0 [410,430) 1 [1010,1030)
//   write  1 [1030,1630)
TEST(ZeroInfinityStep, UsesDrivesForWhatTheHostHasNoRoomFor) {
  BaselineProblem problem = SmallBaseline(2, 2);
  problem.topology.drives = {{.capacity = kAmple, .read = kByteANano, .write = kByteANano}};
  EXPECT_EQ(ZeroInfinityStep(problem).value().step_time, Nanos(450));
  problem.topology.host_memory = Bytes(400 + 600);
  const BaselineStep step = ZeroInfinityStep(problem).value();
  EXPECT_EQ(step.step_time, Nanos(1630));
  EXPECT_EQ(step.host, Bytes(1000));
  EXPECT_EQ(step.drives, Bytes(600));
}

TEST(ZeroOffloadStep, RecomputesOnlyWhereItMust) {
  BaselineProblem problem = SmallBaseline(10, 2);
  const BaselineStep kept = ZeroOffloadStep(problem).value();
  EXPECT_EQ(kept.device, Bytes(500 + 200 + 200 + 10 * 50));
  problem.capacity = kept.device - Bytes(1);
  const BaselineStep step = ZeroOffloadStep(problem).value();
  EXPECT_TRUE(step.recomputes);
  EXPECT_EQ(step.device, Bytes(500 + 200 + 200 + 10 * 5 + 50));
  EXPECT_EQ(step.computing, kept.computing + Nanos(100));
  problem.capacity = step.device - Bytes(1);
  EXPECT_THAT(ZeroOffloadStep(problem).status().ToString(),
              HasSubstr("RESOURCE_EXHAUSTED: a device needs 1000 B at its fullest, its capacity is "
                        "999 B"));
}

TEST(ZeroOffloadStep, NeedsTheHostsMemory) {
  BaselineProblem problem = SmallBaseline(2, 2);
  problem.topology.host_memory = Bytes(1399);
  EXPECT_TRUE(absl::IsResourceExhausted(ZeroOffloadStep(problem).status()));
}

TEST(ZeroSteps, AreNeverFasterThanTheirPartsOverManyShapes) {
  for (int devices : {1, 2, 3, 8}) {
    for (int layers : {1, 2, 7}) {
      for (int microbatches : {1, 3, 8}) {
        BaselineProblem problem = SmallBaseline(layers, devices);
        problem.microbatches = microbatches;
        const BaselineStep offload = ZeroOffloadStep(problem).value();
        const BaselineStep infinity = ZeroInfinityStep(problem).value();
        const Nanos gradients = Nanos((100 + devices - 1) / devices) * layers * microbatches;
        for (const BaselineStep& step : {offload, infinity}) {
          EXPECT_GE(step.step_time, step.computing + problem.host_step);
          EXPECT_GE(step.step_time, gradients + problem.host_step);
        }
        EXPECT_EQ(offload.to_host, Bytes(100) * layers * microbatches);
        EXPECT_EQ(infinity.from_host, Bytes(200) * layers * microbatches);
        problem.topology = ByteANanoServer(devices, devices);  // one uplink for all
        EXPECT_GE(ZeroOffloadStep(problem).value().step_time, offload.step_time);
        EXPECT_GE(ZeroInfinityStep(problem).value().step_time, infinity.step_time);
      }
    }
  }
}

TEST(ZeroSteps, RefuseWhatIsNoProblem) {
  BaselineProblem problem = SmallBaseline(2, 2);
  problem.microbatches = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(ZeroOffloadStep(problem).status()));
  problem = SmallBaseline(2, 2);
  problem.topology.switches.clear();
  EXPECT_THAT(ZeroInfinityStep(problem).status().ToString(),
              HasSubstr("device 0 has no way to the host"));
  problem = SmallBaseline(2, 2);
  problem.topology = SeveralServers(problem.topology, 2, {});
  EXPECT_EQ(ZeroOffloadStep(problem).status().message(),
            "a baseline is modelled on one server, and there are 2");
}

}  // namespace
}  // namespace siphon
