// Time for copies that a simulated step does not need, and a real one does.

#include "planner/search/give_slack.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// One worker, two layers of 10 bytes, four microbatches, all forwards first. A byte takes 190 ns
// from the host, so that a layer's copy back, 1,900 ns, just hides behind the other's backward.
PlanningProblem TwoLayers(int64_t capacity) {
  Topology topology;
  topology.devices.resize(1);
  const BytesPerSecond rate(1'000'000'000 / 190 + 1);
  PlanningProblem problem =
      ProblemOf({.forward = Nanos(1000),
                 .input_backward = Nanos(1000),
                 .weight_backward = Nanos(1000),
                 .saved = {{"all", Bytes(10)}}},
                2, LoweredSchedule("gpipe", 1, 4),
                WithHost(std::move(topology), 1, {.to_host = kByteANano, .from_host = rate}));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(capacity));
  return problem;
}

SimulatedDraft Swapped(DraftSimulator& simulator) {
  DraftPlan draft = KeepingDraft(simulator.problem());
  draft.stages[0].activations[0] = Placement::kHostSwap;
  draft.stages[0].timing = {.forwards_to_leave = 1, .actions_to_come_back = 0, .groups_ahead = 0};
  auto simulated = simulator.Run(draft);
  EXPECT_TRUE(simulated.ok()) << simulated.status();
  return *std::move(simulated);
}

Nanos StepWithSlowerCopies(const PlanningProblem& problem, const DraftPlan& draft) {
  PlanningProblem slower = problem;
  slower.topology = WithSlowerCopies(slower.topology);
  DraftSimulator simulator(slower);
  const auto simulated = simulator.Run(draft);
  EXPECT_TRUE(simulated.ok()) << simulated.status();
  return simulated->score.step;
}

TEST(GiveSlack, CopiesComeBackEarlierWhereThereIsRoom) {
  const PlanningProblem problem = TwoLayers(75);
  DraftSimulator simulator(problem);
  const SimulatedDraft start = Swapped(simulator);
  EXPECT_EQ(start.score.step, Nanos(4 * 6'000)) << "all copies are hidden";
  EXPECT_GT(StepWithSlowerCopies(problem, start.draft), Nanos(4 * 6'000));
  const auto found = GiveSlack(simulator, start, start.score.step);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(Fits(*found));
  EXPECT_EQ(found->score.step, Nanos(4 * 6'000));
  EXPECT_GT(found->draft.stages[0].timing.actions_to_come_back, 0);
  EXPECT_EQ(StepWithSlowerCopies(problem, found->draft), Nanos(4 * 6'000));
}

TEST(GiveSlack, NeverSuffersMoreNorTakesMoreThanItMay) {
  for (const int64_t capacity : {52, 55, 60, 65, 70, 75, 80}) {
    const PlanningProblem problem = TwoLayers(capacity);
    DraftSimulator simulator(problem);
    const SimulatedDraft start = Swapped(simulator);
    for (const int64_t more : {0, 100, 5'000}) {
      const Nanos longest = start.score.step + Nanos(more);
      const auto found = GiveSlack(simulator, start, longest);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(Fits(*found), Fits(start)) << capacity;
      if (!Fits(start)) continue;
      EXPECT_LE(found->score.step, longest) << capacity;
      EXPECT_LE(StepWithSlowerCopies(problem, found->draft),
                StepWithSlowerCopies(problem, start.draft))
          << capacity;
    }
  }
}

TEST(GiveSlack, AWayWithoutALimitStaysOne) {
  Topology topology = TwoLinkedDevices();
  topology.links[0].rate = BytesPerSecond(0);
  topology.links[1].rate = BytesPerSecond(1);
  const Topology slower = WithSlowerCopies(topology);
  EXPECT_EQ(slower.links[0].rate, BytesPerSecond(0));
  EXPECT_EQ(slower.links[1].rate, BytesPerSecond(1));
  EXPECT_EQ(slower.switches[0].to_host, BytesPerSecond(666'666'666));
  EXPECT_EQ(slower.switches[0].to_host_both, BytesPerSecond(0));
}

}  // namespace
}  // namespace siphon
