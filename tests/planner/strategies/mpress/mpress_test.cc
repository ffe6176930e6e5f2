#include "planner/strategies/mpress/mpress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "planner/simulator/simulate.h"
#include "tests/planner/strategies/mpress/mpress_testing.h"

namespace siphon {
namespace {

constexpr int64_t kGiga = 1'000'000'000;

// Two devices joined by 100 bytes a nanosecond, 1 byte a nanosecond to the host for both together.
Topology FastPair() {
  return WithHost(UniformTopology(2, BytesPerSecond(100 * kGiga), Nanos(0)), 2,
                  {.to_host = BytesPerSecond(kGiga), .from_host = BytesPerSecond(kGiga)});
}

// Worker 0 is at most at 2 x 2 x 100 of activations, 2 x 4 of the layers' own and 10 of a boundary.
PlanningProblem TwoStages(int64_t capacity) {
  PlanningProblem problem = EqualLayers(2, 2, 4);
  problem.topology = FastPair();
  problem.capacity = {Bytes(capacity), Bytes(800)};
  return problem;
}

int CountOf(const MemoryPlan& memory, int stage, Placement placement) {
  int count = 0;
  for (const auto& [group, choice] : memory.stages[stage].groups) {
    count += choice.placement == placement ? 1 : 0;
  }
  return count;
}

TEST(Mpress, KeepsWhatFits) {
  const PlannedStep planned = PlanMpress(TwoStages(1'000), {}).value();
  for (int stage = 0; stage < 2; ++stage) {
    EXPECT_EQ(CountOf(planned.memory, stage, Placement::kKeep),
              static_cast<int>(planned.memory.stages[stage].groups.size()));
  }
  EXPECT_EQ(planned.schedule, TwoStages(1'000).schedule);
}

// The host is too slow to hide anything. Recomputing costs 10 ns a layer, 80 in the step; a copy
// over the link takes 1 ns. Both layers on lenders would take too much room on their way back.
TEST(Mpress, GivesToANeighbourWithRoom) {
  const PlannedStep planned = PlanMpress(TwoStages(400), {}).value();
  EXPECT_EQ(CountOf(planned.memory, 0, Placement::kPeerSwap), 1);
  EXPECT_EQ(CountOf(planned.memory, 0, Placement::kRecompute), 1);
  const Nanos kept = PlanMpress(TwoStages(1'000), {}).value().simulated.step_time;
  EXPECT_LE(planned.simulated.step_time, kept + Nanos(40));
  for (const auto& [group, choice] : planned.memory.stages[0].groups) {
    if (choice.placement != Placement::kPeerSwap) continue;
    EXPECT_EQ(choice.stripes, (std::vector<Stripe>{{DeviceId(1), Bytes(100)}}));
    EXPECT_EQ(choice.second_choice, Placement::kHostSwap);
  }
  EXPECT_LE(Total(planned.simulated.peak[0]), Bytes(400));
}

TEST(Mpress, SaysByHowMuchAWorkerIsTooFull) {
  const auto planned = PlanMpress(TwoStages(100), {});
  EXPECT_EQ(planned.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(planned.status().message()),
              testing::MatchesRegex("worker [01] needs [0-9]+ B at its fullest under mpress, its "
                                    "capacity is 100 B"));
}

// Who has a plan already hears no more of one that is no faster.
TEST(Mpress, EndsWhereThereIsAPlanAsFast) {
  PlanningProblem problem = TwoStages(400);
  const PlannedStep planned = PlanMpress(problem, {}).value();
  problem.has_step = planned.simulated.step_time + Nanos(1);
  const auto faster = PlanMpress(problem, {});
  ASSERT_TRUE(faster.ok()) << faster.status();
  EXPECT_EQ(faster->memory, planned.memory);
  problem.has_step = planned.simulated.step_time;
  EXPECT_EQ(PlanMpress(problem, {}).status().code(), absl::StatusCode::kCancelled);
}

TEST(Mpress, PutsWorkersWhereTheProblemSays) {
  PlanningProblem problem = TwoStages(400);
  problem.mapping = DeviceMapping{{DeviceId(1), DeviceId(0)}};
  const PlannedStep planned = PlanMpress(problem, {}).value();
  EXPECT_EQ(planned.mapping, *problem.mapping);
}

// A chain of links, so that the map matters: worker 0 wants to sit beside one with room.
TEST(Mpress, MovesAFullWorkerBesideOneWithRoom) {
  PlanningProblem problem = EqualLayers(4, 2, 8);
  problem.topology =
      WithHost(UniformTopology(4, BytesPerSecond(100 * kGiga), Nanos(0)), 4,
               {.to_host = BytesPerSecond(kGiga), .from_host = BytesPerSecond(kGiga)});
  std::erase_if(problem.topology.links, [](const TopologyLink& link) {
    return std::abs(link.from.value - link.to.value) != 1;
  });
  problem.capacity.assign(4, Bytes(600));
  const PlannedStep in_order = PlanMpress(problem, {.mapping = MpressMapping::kInOrder}).value();
  EXPECT_EQ(in_order.mapping, IdentityMapping(4));
  const std::vector<DeviceId> devices = PlanMpress(problem, {}).value().mapping.device_of_worker;
  const auto are_linked = [&](int a, int b) {
    return std::abs(devices[a].value - devices[b].value) == 1;
  };
  EXPECT_TRUE(are_linked(0, 2) || are_linked(0, 3));
}

TEST(Mpress, RefusesReplicas) {
  PlanningProblem problem = TwoStages(400);
  problem.schedule.replicas = 2;
  problem.topology = {};
  EXPECT_EQ(PlanMpress(problem, {}).status().ToString(),
            "INVALID_ARGUMENT: mpress plans for one pipeline; the schedule has 2 replicas");
}

// Whatever it plans is what the simulator says under all limits, and twice the same.
TEST(Mpress, PlansWhatTheSimulatorConfirms) {
  std::mt19937 random(11);
  int planned = 0;
  for (int round = 0; round < 40; ++round) {
    const int stages = 2 + static_cast<int>(random() % 3);
    PlanningProblem problem = EqualLayers(stages, 1 + static_cast<int>(random() % 3),
                                          stages + static_cast<int>(random() % 5));
    problem.topology =
        WithHost(UniformTopology(stages + static_cast<int>(random() % 2),
                                 BytesPerSecond((1 + static_cast<int64_t>(random() % 50)) * kGiga),
                                 Nanos(1)),
                 2, {.to_host = BytesPerSecond(4 * kGiga), .from_host = BytesPerSecond(4 * kGiga)});
    for (TopologyDevice& device : problem.topology.devices) device.memory = Bytes(200);
    problem.capacity.assign(stages, Bytes(150 + static_cast<int64_t>(random() % 600)));
    const auto plan = PlanMpress(problem, {});
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted) << plan.status();
      continue;
    }
    ++planned;
    const auto simulated =
        Simulate(SimulationOf(problem, plan->mapping, plan->memory, plan->schedule));
    ASSERT_TRUE(simulated.ok()) << "round " << round << ": " << simulated.status();
    EXPECT_EQ(*simulated, plan->simulated);
    const PlannedStep again = PlanMpress(problem, {}).value();
    EXPECT_EQ(again.memory, plan->memory);
    EXPECT_EQ(again.schedule, plan->schedule);
  }
  EXPECT_GT(planned, 15);
}

}  // namespace
}  // namespace siphon
