#include "planner/bounds/facts/memory_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/bounds/facts/swap_limits.h"
#include "planner/simulator/simulate.h"
#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

TEST(MemoryWindows, AreMomentsThatShareNoMicrobatch) {
  // Worker 0: F0 F1 B0 F2 B1 F3 B2 B3. Full at B0 (0 and 1), B1 (1 and 2) and B2 (2 and 3).
  LayerProfile layer = PlainLayer();
  layer.parameters = Bytes(50'000);
  const auto memory = MemoryOfWorkers(ProblemOf(ScheduleOf("1f1b", 2, 4), layer, Bytes(150'000)));
  EXPECT_EQ(memory[0].spare, Bytes(100'000));
  EXPECT_THAT(memory[0].windows, testing::ElementsAre(MemoryWindow{.place = 2,
                                                                   .stage = StageId(0),
                                                                   .last_backward = 4,
                                                                   .waiting = {2},
                                                                   .stash = Bytes(200'000),
                                                                   .excess = Bytes(100'000),
                                                                   .own_stash = Bytes(100'000),
                                                                   .own_last_layer = Bytes(100'000),
                                                                   .excess_at_end = Bytes(0)},
                                                      MemoryWindow{.place = 6,
                                                                   .stage = StageId(0),
                                                                   .last_backward = 7,
                                                                   .waiting = {2},
                                                                   .stash = Bytes(200'000),
                                                                   .excess = Bytes(100'000),
                                                                   .own_stash = Bytes(100'000),
                                                                   .own_last_layer = Bytes(100'000),
                                                                   .excess_at_end = Bytes(0)}));
  EXPECT_THAT(memory[1].windows, testing::IsEmpty());
}

TEST(MemoryWindows, CountWhatIsQueuedForWeightGradients) {
  // zb_h1 on one worker: F0 I0 W0 F1 I1 W1, or with the Ws behind.
  PlanningProblem problem =
      ProblemOf(ParseSchedule("0F0 0I0 0F1 0I1 0W0 0W1\n").value(), PlainLayer(), Bytes(50'000));
  problem.profile.layers[0].kept_for_weights = Bytes(30'000);
  const auto memory = MemoryOfWorkers(problem);
  ASSERT_EQ(memory[0].windows.size(), 1u);
  EXPECT_EQ(memory[0].windows[0].place, 3);
  EXPECT_EQ(memory[0].windows[0].queued, Bytes(30'000));
  EXPECT_EQ(memory[0].windows[0].excess, Bytes(80'000));
  EXPECT_TRUE(memory[0].windows[0].split);
  // When I1 ends: what W0 and W1 need.
  EXPECT_EQ(memory[0].windows[0].excess_at_end, Bytes(10'000));
  EXPECT_EQ(memory[0].fixed_excess, Bytes(10'000));
  EXPECT_THAT(memory[0].parameter_uses, testing::ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(memory[0].gradient_uses, testing::ElementsAre(4, 5));
}

// A bound may count no more for a recomputation than the shortest that a plan can have.
TEST(MemoryWindows, TakeTheShortestTimeToComputeALayerAgain) {
  PlanningProblem problem = ProblemOf(ScheduleOf("1f1b", 2, 4), PlainLayer(), Bytes(150'000));
  const Nanos forward = problem.profile.layers[0].forward;
  EXPECT_EQ(MemoryOfWorkers(problem)[0].layers.at(0).recompute, forward);
  for (LayerProfile& layer : problem.profile.layers) layer.recompute = Nanos(forward.value - 1);
  EXPECT_EQ(MemoryOfWorkers(problem)[0].layers.at(0).recompute, Nanos(forward.value - 1));
}

TEST(MemoryWindows, AreNoneWithoutCapacityOrWithEnough) {
  for (const Bytes capacity : {Bytes(0), Bytes(200'000)}) {
    const auto memory =
        MemoryOfWorkers(ProblemOf(ScheduleOf("1f1b", 2, 4), PlainLayer(), capacity));
    EXPECT_THAT(memory[0].windows, testing::IsEmpty());
  }
}

TEST(MemoryWindows, PutEqualLayersTogether) {
  PlanningProblem problem = ProblemOf(ScheduleOf("gpipe", 1, 2), PlainLayer(), Bytes(100'000), 3);
  problem.profile.layers[1].forward = Nanos(1);
  EXPECT_THAT(MemoryOfWorkers(problem)[0].layers,
              testing::ElementsAre(
                  LayerKind{.stash = Bytes(100'000), .recompute = Nanos(10'000), .layers = 2},
                  LayerKind{.stash = Bytes(100'000), .recompute = Nanos(1), .layers = 1}));
}

TEST(MemoryWindows, NeverAskForMoreThanTheSimulatedPeak) {
  for (int seed = 0; seed < 100; ++seed) {
    Dice dice(seed);
    PlanningProblem problem = RandomProblem(dice);
    const SimulationInput input{.schedule = problem.schedule,
                                .stages = StageCosts(problem.profile, problem.partition)};
    const SimulatedStep step = Simulate(input).value();
    problem.capacity.assign(WorkerCount(problem.schedule), Bytes(1));
    const auto memory = MemoryOfWorkers(problem);
    for (size_t worker = 0; worker < memory.size(); ++worker) {
      for (const MemoryWindow& window : memory[worker].windows) {
        EXPECT_LE(window.excess + Bytes(1), Total(step.peak[worker])) << seed;
        EXPECT_LE(window.excess_at_end + Bytes(1), Total(step.peak[worker])) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace siphon
