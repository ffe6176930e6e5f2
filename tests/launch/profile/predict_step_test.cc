#include "launch/profile/predict_step.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

PlanText TwoStages() {
  PlanText plan;
  plan.training = ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  plan.costs = std::string(kUnitCosts);
  plan.global_batch = 2;
  plan.workers.resize(2);
  plan.stages = {{.worker = WorkerId(0), .layers = {0, 2}, .names = "a .. b"},
                 {.worker = WorkerId(1), .layers = {2, 3}, .names = "c"}};
  return plan;
}

// All that a planner may decide, in one input.
SimulationInput PlannedInput() {
  SimulationInput input = UnitStages(ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"));
  input.layers = {{{.forward = Nanos(1), .stash = Bytes(1)}, {.input_backward = Nanos(1)}},
                  {{.forward = Nanos(1), .optimizer = Nanos(3)}}};
  input.topology = UniformTopology(3, BytesPerSecond(7), Nanos(9));
  input.topology.name = "three # of a kind";
  input.device_of_worker = {DeviceId(2), DeviceId(1)};
  input.transport = {.latency = Nanos(1),
                     .rate = BytesPerSecond(2),
                     .host_rate = BytesPerSecond(3),
                     .copy_rate = BytesPerSecond(4),
                     .swap_rate = BytesPerSecond(6),
                     .room = 5};
  input.cores = {1000, 1900};
  input.host_step = {Nanos(0), Nanos(70)};
  input.memory.stages.resize(2);
  input.memory.stages[1].groups = {
      {{GroupKind::kActivations, {2, 3}, Bytes(1)}, {Placement::kHostSwap}}};
  input.capacity = {Bytes(100), Bytes(0)};
  input.held.resize(2);
  input.held[0][MemoryKind::kCommunication] = Bytes(11);
  input.held[1][MemoryKind::kSlack] = Bytes(12);
  input.frees_at_waits = true;
  return input;
}

TEST(PredictStep, KeepsAllThatTheSimulatorIsAskedIn) {
  const SimulationInput input = PlannedInput();
  const PlanText plan = WithSimulationInput(TwoStages(), input);
  EXPECT_EQ(plan.stages[0].names, "a .. b");
  EXPECT_EQ(plan.topology.name, "three _ of a kind");
  const auto read = ParsePlanText(ToString(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, plan);
  const SimulationInput again = SimulationInputOf(*read);
  EXPECT_EQ(again.schedule, input.schedule);
  EXPECT_EQ(again.stages, input.stages);
  EXPECT_EQ(again.layers, input.layers);
  EXPECT_EQ(again.topology.links, input.topology.links);
  EXPECT_EQ(again.device_of_worker, input.device_of_worker);
  EXPECT_EQ(again.transport, input.transport);
  EXPECT_EQ(again.cores, input.cores);
  EXPECT_EQ(again.memory, input.memory);
  EXPECT_EQ(again.host_step, input.host_step);
  EXPECT_EQ(again.capacity, input.capacity);
  EXPECT_EQ(again.held, input.held);
  EXPECT_EQ(again.frees_at_waits, input.frees_at_waits);
}

TEST(PredictStep, CountsWhatElseIsHeldAsSlack) {
  SimulationInput input = PlannedInput();
  input.held[0][MemoryKind::kWorkspace] = Bytes(5);
  const PlanText plan = WithSimulationInput(TwoStages(), input);
  EXPECT_EQ(plan.workers[0].communication, Bytes(11));
  EXPECT_EQ(plan.workers[0].slack, Bytes(5));
}

TEST(PredictStep, TakesAMemoryPlanThatKeepsEverythingForNone) {
  SimulationInput input = PlannedInput();
  input.memory.stages[1].groups.clear();
  EXPECT_TRUE(WithSimulationInput(TwoStages(), input).memory.stages.empty());
}

TEST(PredictStep, RemembersTimeBoundAndPeaks) {
  const auto step = PredictStep(WithSimulationInput(
      TwoStages(), UnitStages(ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"))));
  ASSERT_TRUE(step.ok()) << step.status();
  // F 1, B 2: worker 0 F0 [0,1) F1 [1,2) B0 [4,6) B1 [7,9).
  const PlanPrediction predicted = PredictionOf(*step, Nanos(6));
  EXPECT_EQ(predicted.step_time, Nanos(9));
  EXPECT_EQ(predicted.lower_bound, Nanos(6));
  EXPECT_EQ(predicted.peak, (std::vector<Bytes>{Bytes(2), Bytes(1)}));
}

}  // namespace
}  // namespace siphon
