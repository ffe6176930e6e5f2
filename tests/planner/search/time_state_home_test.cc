// Optimizer state at home between steps that leaves late and comes back early.

#include "planner/search/time_state_home.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/search/state_home.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// One worker, two layers, eight microbatches, all forwards first: 2 us a forward, 4 us a backward.
// A layer has 10 bytes each of weights and gradients, 40 of state, and saves 10; the host takes 1
// byte in 100 ns, so state of a layer in 4 us.
PlanningProblem EightMicrobatches(int64_t capacity) {
  Topology topology;
  topology.devices.resize(1);
  const BytesPerSecond rate(10'000'000);
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .optimizer = Nanos(100),
                                       .parameters = Bytes(10),
                                       .gradients = Bytes(10),
                                       .optimizer_state = Bytes(40),
                                       .saved = {{"all", Bytes(10)}}},
                                      2, LoweredSchedule("gpipe", 1, 8),
                                      WithHost(topology, 1, {.to_host = rate, .from_host = rate}));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(capacity));
  return problem;
}

DraftPlan StateAway(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    std::fill(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kHostSwap);
  }
  return draft;
}

// 40 bytes of weights and gradients, 80 of state, 160 of activations at most; 220 may be there. The
// state is in the way when more than 5 microbatches are live, half of it when more than 7 are.
TEST(TimeStateHome, LeavesAsLateAndComesBackAsEarlyAsThereIsRoom) {
  const PlanningProblem problem = EightMicrobatches(220);
  DraftSimulator simulator(problem);
  const auto timed = TimeStateHome(simulator, StateAway(problem));
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_TRUE(Fits(*timed));
  EXPECT_TRUE(IsStateTimed(timed->draft));
  const StageDraft& stage = timed->draft.stages[0];
  EXPECT_EQ(stage.timing.groups_away_between_steps, 0);
  EXPECT_EQ(stage.state_times.gone, (std::vector<int>{5, 7}));
  // Before the backward of the last but 7th, and of the last but 5th, microbatch.
  EXPECT_EQ(stage.state_times.back, (std::vector<int>{7, 5}));
  EXPECT_EQ(timed->peaks[0], Bytes(220));
  // No copy is waited for: forwards, backwards, and the steps of both layers.
  EXPECT_EQ(timed->score.step, Nanos(8 * 2'000 + 8 * 4'000 + 200));
  DraftPlan spread = StateAway(problem);
  KeepStateHome(problem, spread);
  const auto untimed = simulator.Run(spread);
  ASSERT_TRUE(untimed.ok()) << untimed.status();
  EXPECT_GT(untimed->score.step, timed->score.step);
}

TEST(TimeStateHome, LeavesWhatIsKeptAndWhatStepsOnTheHost) {
  PlanningProblem problem = EightMicrobatches(1000);
  problem.host_step = Nanos(1000);
  DraftSimulator simulator(problem);
  const auto kept = TimeStateHome(simulator, KeepingDraft(problem));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_FALSE(IsStateTimed(kept->draft));
  DraftPlan on_host = KeepingDraft(problem);
  PutStepOnHost(on_host.stages[0]);
  const auto stepped = TimeStateHome(simulator, on_host);
  ASSERT_TRUE(stepped.ok()) << stepped.status();
  EXPECT_FALSE(IsStateTimed(stepped->draft));
}

// The same, but that the host steps the first layer: its state is never in the way.
TEST(TimeStateHome, TimesAStageBesideItsStepsOnTheHost) {
  PlanningProblem problem = EightMicrobatches(220);
  problem.host_step = Nanos(1000);
  DraftSimulator simulator(problem);
  DraftPlan draft = KeepingDraft(problem);
  PutStepOnHost(draft.stages[0]);
  draft.stages[0].timing.groups_away_between_steps = 1;
  draft.stages[0].timing.home_beside_host = true;
  const auto timed = TimeStagesHome(simulator, draft, {StageId(0)});
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_TRUE(Fits(*timed));
  const StageDraft& stage = timed->draft.stages[0];
  EXPECT_EQ(stage.timing.groups_away_between_steps, 1);
  // 40 bytes of weights and gradients, 40 of the second layer's state, 20 a microbatch.
  EXPECT_EQ(stage.state_times.gone.front(), 7);
  EXPECT_EQ(stage.state_times.back.front(), 7);
  EXPECT_EQ(timed->peaks[0], Bytes(220));
}

// The same memory, and all state away between steps: in before the backwards of the last but 7th
// and the last but 5th microbatch, so that behind the last one only copies out are left.
TEST(TimeStateIn, ComesAsEarlyAsThereIsRoom) {
  const PlanningProblem problem = EightMicrobatches(220);
  DraftSimulator simulator(problem);
  const auto timed = TimeStateIn(simulator, StateAway(problem));
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_TRUE(Fits(*timed));
  EXPECT_TRUE(IsStateTimed(timed->draft));
  const StageDraft& stage = timed->draft.stages[0];
  EXPECT_GE(stage.timing.groups_ahead, 1);
  EXPECT_EQ(stage.state_times.in, (std::vector<int>{7, 5}));
  EXPECT_TRUE(stage.state_times.gone.empty());
  EXPECT_EQ(timed->peaks[0], Bytes(220));
  EXPECT_EQ(timed->score.step, Nanos(8 * 2'000 + 8 * 4'000 + 100 + 2 * 4'000));
}

TEST(TimeStateIn, LeavesWhatIsKeptAndWhatStepsOnTheHost) {
  PlanningProblem problem = EightMicrobatches(1000);
  problem.host_step = Nanos(1000);
  DraftSimulator simulator(problem);
  DraftPlan on_host = KeepingDraft(problem);
  PutStepOnHost(on_host.stages[0]);
  for (const DraftPlan& draft : {KeepingDraft(problem), on_host}) {
    const auto timed = TimeStateIn(simulator, draft);
    ASSERT_TRUE(timed.ok()) << timed.status();
    EXPECT_EQ(timed->draft.stages[0].state_times, draft.stages[0].state_times);
  }
}

// What does not fit at its thriftiest stays so.
TEST(TimeStateHome, SaysWhatDoesNotFit) {
  const PlanningProblem problem = EightMicrobatches(150);
  DraftSimulator simulator(problem);
  const auto timed = TimeStateHome(simulator, StateAway(problem));
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_FALSE(Fits(*timed));
}

TEST(TimeStateHome, IsFoundByAuto) {
  const PlanningProblem problem = EightMicrobatches(220);
  const auto planned = PlanAuto(problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_LE(planned->simulated.step_time, Nanos(8 * 2'000 + 8 * 4'000 + 200));
}

}  // namespace
}  // namespace siphon
