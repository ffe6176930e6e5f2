#include "planner/drafts/fit_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/drafts/search_effort.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

constexpr Placement kKept = Placement::kKeep;
constexpr Placement kAgain = Placement::kRecompute;

TEST(FitMoves, TakesNoMoreMovesThanAWorkerNeeds) {
  PlanningProblem problem = TwoWorkers({});
  const auto fitted = [&problem] {
    DraftSimulator simulator(problem);
    const auto simulated = FitMoves(simulator, KeepingDraft(problem),
                                    ActivationMoves(problem, kAgain, LayerOrder::kLastLayersFirst));
    EXPECT_TRUE(simulated.ok()) << simulated.status();
    return *simulated;
  };
  const SimulatedDraft one = fitted();
  EXPECT_THAT(one.draft.stages[0].activations, ElementsAre(kKept, kAgain));
  EXPECT_THAT(one.draft.stages[1].activations, ElementsAre(kKept, kKept));
  SetCapacity(problem, Bytes(25));
  EXPECT_THAT(fitted().draft.stages[0].activations, ElementsAre(kAgain, kAgain));
  SetCapacity(problem, Bytes(5));
  const SimulatedDraft too_full = fitted();
  EXPECT_FALSE(Fits(too_full));
  EXPECT_GT(too_full.excess[0], Bytes(0));
}

// Where it looks first says how soon it finds them, not how many they are.
TEST(FitMoves, TakesAsManyMovesWhereverALargeProblemLooksFirst) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .saved = {{"all", Bytes(10)}}},
                                      40, LoweredSchedule("1f1b", 2, 64), {});
  SetCapacity(problem, Bytes(150));
  ASSERT_TRUE(IsLarge(problem));
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    stage.recompute_run = 1;
    stage.direct = DirectBackward::kDrop;
  }
  const MoveLists moves = ActivationMoves(problem, kAgain, LayerOrder::kLastLayersFirst);
  DraftSimulator simulator(problem);
  std::vector<int> taken;
  const auto fitted = FitMoves(simulator, draft, moves, taken);
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  ASSERT_TRUE(Fits(*fitted));
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_GT(taken[0], taken[1]);
  EXPECT_GT(taken[1], 0);
  for (std::vector<int> near : {taken, {taken[0] - 1, taken[1] + 1}, {0, 0}, {20, 20}, {3}}) {
    const bool knows = near == taken;
    DraftSimulator other(problem);
    const auto again = FitMoves(other, draft, moves, near);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->draft, fitted->draft);
    EXPECT_EQ(near, taken);
    if (knows) {
      EXPECT_LT(other.simulations(), simulator.simulations());
    }
  }
  SetCapacity(problem, Bytes(5));  // too little for all moves
  DraftSimulator tight(problem);
  const auto best = FitMoves(tight, draft, moves, taken);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_FALSE(Fits(*best));
  EXPECT_EQ(taken[0], static_cast<int>(moves[0].size()));
}

// A host with room for what has to leave, and not for all that could.
TEST(FitMoves, LooksForFewMovesWhereTheHostCannotTakeAll) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  const absl::StatusOr<PlannedStep> roomy = PlanHostSwap(problem);
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  const Bytes least = roomy->simulated.host_peak;
  ASSERT_GT(least, Bytes(0));
  DraftSimulator simulator(problem);
  DraftPlan all = KeepingDraft(problem);
  for (StageDraft& stage : all.stages) {
    std::fill(stage.activations.begin(), stage.activations.end(), Placement::kHostSwap);
  }
  const absl::StatusOr<SimulatedDraft> everything = simulator.Run(all);
  ASSERT_TRUE(everything.ok()) << everything.status();
  ASSERT_GT(everything->simulated.host_peak, least);
  problem.topology.host_memory = least;
  const absl::StatusOr<PlannedStep> tight = PlanHostSwap(problem);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_EQ(tight->simulated.step_time, roomy->simulated.step_time);
  EXPECT_LE(tight->simulated.host_peak, least);
  problem.topology.host_memory = Bytes(1);
  EXPECT_EQ(PlanHostSwap(problem).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PlannedOf, StepsOnTheDeviceWhatNoneOfTheLayersDoesOnTheHost) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  for (LayerProfile& layer : problem.profile.layers) layer.optimizer_state = Bytes(10);
  SetCapacity(problem, Bytes(1'000));
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].update = UpdatePlace::kHost;  // and has nothing there
  PutStepOnHost(draft.stages[1]);
  draft.stages[1].optimizer_state[0] = kKept;
  DraftSimulator simulator(problem);
  absl::StatusOr<SimulatedDraft> simulated = simulator.Run(draft);
  ASSERT_TRUE(simulated.ok()) << simulated.status();
  const auto planned = PlannedOf(problem, *std::move(simulated), "by hand");
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->memory.stages[0].update, UpdatePlace::kDevice);
  EXPECT_EQ(planned->memory.stages[1].update, UpdatePlace::kHost);
}

TEST(ActivationMoves, GoThroughTheLayersInTheirOrder) {
  PlanningProblem problem = TwoWorkers({});
  problem.profile.layers[3].saved.clear();
  const MoveLists first = ActivationMoves(problem, kAgain, LayerOrder::kFirstLayersFirst);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_THAT(first[0], ElementsAre(DraftMove{.stage = 0, .layer = 0, .to = kAgain},
                                    DraftMove{.stage = 0, .layer = 1, .to = kAgain}));
  EXPECT_THAT(first[1], ElementsAre(DraftMove{.stage = 1, .layer = 0, .to = kAgain}))
      << "layer 3 saves nothing";
}

// What stage 0 sends away first under the strategy, with the choice for the case that it cannot.
GroupChoice FirstSwapped(const absl::StatusOr<PlannedStep>& planned) {
  EXPECT_TRUE(planned.ok()) << planned.status();
  if (!planned.ok()) return {};
  for (const PlannedGroup& group : planned->memory.stages[0].groups) {
    if (IsSwap(group.choice.placement)) return group.choice;
  }
  ADD_FAILURE() << "nothing is swapped";
  return {};
}

TEST(AddSecondChoices, TakeTheHostOrElseRecompute) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  problem.capacity[1] = Bytes(40);
  const GroupChoice with_host = FirstSwapped(PlanPeerSwap(problem));
  EXPECT_EQ(with_host.placement, Placement::kPeerSwap);
  EXPECT_EQ(with_host.second_choice, Placement::kHostSwap);
  problem.topology.switches.clear();
  EXPECT_EQ(FirstSwapped(PlanPeerSwap(problem)).second_choice, Placement::kRecompute);
}

TEST(AddSecondChoices, RecomputeWhereTheHostIsFull) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  problem.capacity[1] = Bytes(40);
  problem.topology.host_memory = Bytes(5);
  EXPECT_EQ(FirstSwapped(PlanPeerSwap(problem)).second_choice, Placement::kRecompute);
}

TEST(AddSecondChoices, RecomputeWhatTheHostDoesNotTake) {
  const GroupChoice choice = FirstSwapped(PlanHostSwap(TwoWorkers(TwoLinkedDevices())));
  EXPECT_EQ(choice.placement, Placement::kHostSwap);
  EXPECT_EQ(choice.second_choice, Placement::kRecompute);
}

}  // namespace
}  // namespace siphon
