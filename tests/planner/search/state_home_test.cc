// Optimizer state that is home between steps.

#include "planner/search/state_home.h"

#include <gtest/gtest.h>

#include <vector>

#include "planner/search/swap_draft.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// One worker, four layers, two microbatches: 8 us of forwards, 16 of backwards, 400 ns of optimizer
// steps. A layer has 10 bytes of weights, 10 of gradients, 40 of state, and saves 10; the host
// takes 1 byte in 10 ns.
PlanningProblem FourLayers(int64_t capacity) {
  Topology topology;
  topology.devices.resize(1);
  const BytesPerSecond rate(100'000'000);
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .optimizer = Nanos(100),
                                       .parameters = Bytes(10),
                                       .gradients = Bytes(10),
                                       .optimizer_state = Bytes(40),
                                       .saved = {{"all", Bytes(10)}}},
                                      4, LoweredSchedule("gpipe", 1, 2),
                                      WithHost(topology, 1, {.to_host = rate, .from_host = rate}));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(capacity));
  return problem;
}

DraftPlan WithStateOfTwoLayersAway(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].optimizer_state[2] = draft.stages[0].optimizer_state[3] = Placement::kHostSwap;
  return draft;
}

// 320 bytes and more with all activations: 280 are enough when two layers' state is away as the
// second forward fills the memory, and is back behind the first backward.
TEST(StateHome, HidesBothCopies) {
  const PlanningProblem problem = FourLayers(280);
  DraftSimulator simulator(problem);
  DraftPlan draft = WithStateOfTwoLayersAway(problem);
  const auto away = simulator.Run(draft);
  ASSERT_TRUE(away.ok()) << away.status();
  EXPECT_TRUE(Fits(*away));
  // Both copies in behind the last backward, the second one's step and copy out, the other steps.
  EXPECT_EQ(away->score.step, Nanos(24'000 + 800 + 100 + 400 + 200));
  KeepStateHome(problem, draft);
  EXPECT_TRUE(HasStateHome(draft));
  const auto home = simulator.Run(draft);
  ASSERT_TRUE(home.ok()) << home.status();
  EXPECT_TRUE(Fits(*home));
  EXPECT_EQ(home->peaks[0], Bytes(280));
  EXPECT_EQ(home->score.step, Nanos(24'400));
  const auto best =
      BestWithStateHome(simulator, *away, simulator.Run(KeepingDraft(problem)).value());
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->score.step, Nanos(24'400));
  for (const auto& plan : {PlanHostSwap, PlanAuto}) {
    const auto planned = plan(problem);
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_EQ(planned->simulated.step_time, Nanos(24'400));
  }
}

// 240 bytes of weights, gradients and state in all.
TEST(StateHome, LeavesAwayWhatThereIsNoRoomForBetweenSteps) {
  const auto groups_away = [](int64_t capacity) {
    const PlanningProblem problem = FourLayers(capacity);
    DraftPlan draft = KeepingDraft(problem);
    EXPECT_FALSE(HasStateHome(draft));
    KeepStateHome(problem, draft);
    return draft.stages[0].timing.groups_away_between_steps;
  };
  EXPECT_EQ(groups_away(0), 0);  // no limit
  EXPECT_EQ(groups_away(240), 0);
  EXPECT_EQ(groups_away(239), 1);
  EXPECT_EQ(groups_away(200), 1);
  EXPECT_EQ(groups_away(199), 2);
  EXPECT_EQ(groups_away(10), 4);
  PlanningProblem held = FourLayers(240);
  held.held.resize(1);
  held.held[0][MemoryKind::kWorkspace] = Bytes(41);
  DraftPlan draft = KeepingDraft(held);
  KeepStateHome(held, draft);
  EXPECT_EQ(draft.stages[0].timing.groups_away_between_steps, 2);
}

TEST(StateHome, NeverMakesHostSwapWorse) {
  int better = 0;
  for (const int64_t capacity : {290, 280, 270, 250, 230, 210}) {
    const PlanningProblem problem = FourLayers(capacity);
    DraftSimulator simulator(problem);
    const auto draft = DraftHostSwap(simulator);
    if (!draft.ok() || !Fits(*draft)) continue;
    const auto host_swap = PlanHostSwap(problem);
    ASSERT_TRUE(host_swap.ok()) << host_swap.status();
    EXPECT_LE(host_swap->simulated.step_time, draft->score.step);
    better += host_swap->simulated.step_time < draft->score.step ? 1 : 0;
  }
  EXPECT_GT(better, 0);
}

}  // namespace
}  // namespace siphon
