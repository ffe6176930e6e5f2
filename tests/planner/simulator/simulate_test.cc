#include "planner/simulator/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/lower_schedule.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

constexpr char kTwoWorkers[] =
    "0F0 0F1 0B0 0F2 0B1 0B2\n"
    "1F0 1B0 1F1 1B1 1F2 1B2\n";

TEST(Simulate, TwoWorkersAndThreeMicrobatchesByHand) {
  SimulationInput input = EqualStages(ParsedSchedule(kTwoWorkers), TenNanos());
  input.transport.latency = Nanos(5);
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0F1 [10,20) worker 0\n"
            "wait 0B0 [20,50) worker 0\n"
            "0B0 [50,70) worker 0\n"
            "0F2 [70,80) worker 0\n"
            "0B1 [80,100) worker 0\n"
            "wait 0B2 [100,120) worker 0\n"
            "0B2 [120,140) worker 0\n"
            "wait 1F0 [0,15) worker 1\n"
            "1F0 [15,25) worker 1\n"
            "1B0 [25,45) worker 1\n"
            "1F1 [45,55) worker 1\n"
            "1B1 [55,75) worker 1\n"
            "wait 1F2 [75,85) worker 1\n"
            "1F2 [85,95) worker 1\n"
            "1B2 [95,115) worker 1\n");
  EXPECT_EQ(step.step_time, Nanos(140));
  EXPECT_DOUBLE_EQ(step.bubble_fraction, 100.0 / 280.0);
  EXPECT_DOUBLE_EQ(step.inner_idle_fraction, 60.0 / 280.0);
  EXPECT_THAT(step.exposed_waits,
              ElementsAre(ElementsAre(Nanos(40), Nanos(10), Nanos(0), Nanos(0)),
                          ElementsAre(Nanos(15), Nanos(10), Nanos(0), Nanos(0))));
  EXPECT_THAT(step.peak_live_activations, ElementsAre(2, 1));
}

TEST(Simulate, ALoweredStepEndsTogether) {
  const Schedule lowered =
      AppendOptimizerStep(InsertCommunication(ParsedSchedule(kTwoWorkers)).value(), {});
  SimulationInput input = EqualStages(lowered, TenNanos());
  input.transport.latency = Nanos(5);
  const SimulatedStep step = Simulated(input);
  // The same as without messages in the programs, until the norm: 10 ns to meet, 4 to step.
  EXPECT_THAT(TimelineText(step), testing::HasSubstr("0B2 [120,140) worker 0\n"
                                                     "wait 0REDUCE_NORM [140,150) worker 0\n"
                                                     "0STEP [150,154) worker 0\n"));
  EXPECT_THAT(TimelineText(step), testing::EndsWith("1B2 [95,115) worker 1\n"
                                                    "wait 1REDUCE_NORM [115,150) worker 1\n"
                                                    "1STEP [150,154) worker 1\n"));
  EXPECT_EQ(step.step_time, Nanos(154));
  EXPECT_THAT(step.exposed_waits[1], ElementsAre(Nanos(15), Nanos(10), Nanos(0), Nanos(35)));
}

TEST(Simulate, AMessageWaitsUntilItsBufferIsPosted) {
  // Worker 1 posts 1RECV_F1 only behind 1B0, though 0F1 is computed at 20.
  SimulationInput input =
      EqualStages(ParsedSchedule("0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                                 "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n"),
                  TenNanos());
  input.transport.latency = Nanos(5);
  const SimulatedStep step = Simulated(input);
  EXPECT_THAT(TimelineText(step), testing::HasSubstr("1B0 [25,45) worker 1\n"
                                                     "wait 1F1 [45,50) worker 1\n"
                                                     "1F1 [50,60) worker 1\n"));
}

TEST(Simulate, MessagesOfOneChannelGoOneAfterTheOther) {
  // 30 bytes at 1 GB/s: 30 ns each, and two are computed within 20 ns.
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1\n"),
                                      {.forward = Nanos(10), .output = Bytes(30)});
  input.transport.rate = BytesPerSecond(1'000'000'000);
  const SimulatedStep step = Simulated(input);
  EXPECT_THAT(TimelineText(step), testing::HasSubstr("1F0 [40,50) worker 1\n"
                                                     "wait 1F1 [50,70) worker 1\n"
                                                     "1F1 [70,80) worker 1\n"));
  ASSERT_EQ(step.lanes.size(), 4);  // two channels, and what each goes through
  EXPECT_EQ(step.lanes[0].name, "worker 0 to worker 1, forward");
  EXPECT_EQ(step.lanes[0].bytes, Bytes(60));
  EXPECT_EQ(step.lanes[0].busy, Nanos(60));
  EXPECT_EQ(step.lanes[0].intervals[1].begin, Nanos(40));
  EXPECT_EQ(ToString(step.lanes[0].intervals[1].action), "0F1");
  EXPECT_EQ(step.lanes[2].name, "worker 0 to worker 1");
  EXPECT_EQ(step.lanes[2].bytes, Bytes(60));
}

TEST(Simulate, OneStageNeedsNobody) {
  const SimulatedStep step = Simulated(EqualStages(ParsedSchedule("0F0 0B0\n"), TenNanos()));
  EXPECT_EQ(TimelineText(step), "0F0 [0,10) worker 0\n0B0 [10,30) worker 0\n");
  EXPECT_EQ(step.bubble_fraction, 0);
  EXPECT_TRUE(step.lanes.empty());
}

TEST(Simulate, StagesOfOneWorkerPassTensorsOnWithoutAMessage) {
  // A V: worker 0 holds stages 0 and 3, worker 1 the two in the middle.
  SimulationInput input =
      EqualStages(ParsedSchedule("0F0 3F0 3I0 0B0 3W0\n1F0 2F0 2B0 1B0\n"), TenNanos());
  EXPECT_EQ(TimelineText(Simulated(input)),
            "0F0 [0,10) worker 0\n"
            "wait 3F0 [10,30) worker 0\n"
            "3F0 [30,40) worker 0\n"
            "3I0 [40,50) worker 0\n"
            "wait 0B0 [50,90) worker 0\n"
            "0B0 [90,110) worker 0\n"
            "3W0 [110,120) worker 0\n"
            "wait 1F0 [0,10) worker 1\n"
            "1F0 [10,20) worker 1\n"
            "2F0 [20,30) worker 1\n"
            "wait 2B0 [30,50) worker 1\n"
            "2B0 [50,70) worker 1\n"
            "1B0 [70,90) worker 1\n");
}

TEST(Simulate, CompoundCellsRunInSequence) {
  const SimulatedStep step =
      Simulated(EqualStages(ParsedSchedule("0F0 (0F1;0B0)OVERLAP_F_B 0B1\n"), TenNanos()));
  EXPECT_EQ(step.step_time, Nanos(60));
  EXPECT_THAT(step.peak_live_activations, ElementsAre(2));
}

TEST(Simulate, AStepInTheProgramTakesItsTimeThere) {
  EXPECT_EQ(TimelineText(Simulated(
                EqualStages(ParsedSchedule("0F0 0B0 0STEP\n1F0 1B0 1STEP\n"), TenNanos()))),
            "0F0 [0,10) worker 0\n"
            "wait 0B0 [10,40) worker 0\n"
            "0B0 [40,60) worker 0\n"
            "0STEP [60,64) worker 0\n"
            "wait 1F0 [0,10) worker 1\n"
            "1F0 [10,20) worker 1\n"
            "1B0 [20,40) worker 1\n"
            "1STEP [40,44) worker 1\n");
}

TEST(Simulate, ReplicasAreTheSamePipelineAgain) {
  Schedule schedule = ParsedSchedule("0F0 0B0 0STEP\n");
  schedule.replicas = 2;
  StageCost cost = TenNanos();
  cost.gradients = Bytes(40);
  SimulationInput input = EqualStages(schedule, cost);
  // Both replicas' 40 bytes share 1 GB/s to the host: 80 ns; and back as long.
  input.transport.host_rate = BytesPerSecond(1'000'000'000);
  EXPECT_EQ(TimelineText(Simulated(input)),
            "0F0 [0,10) worker 0\n"
            "0B0 [10,30) worker 0\n"
            "wait 0STEP [30,190) worker 0\n"
            "0STEP [190,194) worker 0\n"
            "0F0 [0,10) worker 1\n"
            "0B0 [10,30) worker 1\n"
            "wait 0STEP [30,190) worker 1\n"
            "0STEP [190,194) worker 1\n");
}

TEST(Simulate, LayersOfAModelMakeTheStagesCosts) {
  const ModelProfile profile{
      .layers = {{.name = "a", .forward = Nanos(1), .saved = {{"x", Bytes(3)}, {"y", Bytes(4)}}},
                 {.name = "b", .forward = Nanos(2), .weight_backward = Nanos(5)},
                 {.name = "c", .input_backward = Nanos(6), .kept_for_weights = Bytes(9)}}};
  const StagePartition partition{.stages = {{0, 2}, {2, 3}}};
  EXPECT_THAT(LayerCosts(profile, partition),
              ElementsAre(ElementsAre(LayerCost{.forward = Nanos(1), .stash = Bytes(7)},
                                      LayerCost{.forward = Nanos(2), .weight_backward = Nanos(5)}),
                          ElementsAre(LayerCost{.input_backward = Nanos(6),
                                                .kept_for_weights = Bytes(9)})));
}

}  // namespace
}  // namespace siphon
