// Steps that workers exchange with the host.

#include "planner/search/exchange_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/search/state_home.h"
#include "planner/search/time_state_home.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

constexpr int kMany = 10'000;

// [stage]: how many of its two layers step on the host; the others are home between steps.
DraftPlan OnHost(const PlanningProblem& problem, const std::vector<int>& layers) {
  DraftPlan draft = KeepingDraft(problem);
  for (size_t stage = 0; stage < draft.stages.size(); ++stage) {
    PutStepOnHost(draft.stages[stage]);
    draft.stages[stage].timing.home_beside_host = true;
    draft.stages[stage].timing.groups_away_between_steps = layers[stage];
  }
  return draft;
}

std::vector<int> LayersOnHost(const DraftPlan& draft) {
  std::vector<int> layers;
  for (const StageDraft& stage : draft.stages) {
    const bool on_host = stage.update == UpdatePlace::kHost;
    layers.push_back(on_host ? StateAwayBetweenSteps(stage) - stage.groups_streamed : 0);
  }
  return layers;
}

SimulatedDraft Exchanged(const PlanningProblem& problem, DraftPlan start, int simulations = kMany) {
  DraftSimulator simulator(problem);
  const auto before = simulator.Run(std::move(start));
  EXPECT_TRUE(before.ok()) << before.status();
  const auto after = ExchangeSteps(simulator, *before, simulations);
  EXPECT_TRUE(after.ok()) << after.status();
  EXPECT_LE(after->score.step, before->score.step);
  EXPECT_TRUE(Fits(*after) || !Fits(*before));
  return *after;
}

TEST(ExchangeSteps, MovesTheBorderBetweenHostAndDevice) {
  const PlanningProblem problem = TwoWorkersOfMuchState(Bytes(4'000));
  StageDraft stage = OnHost(problem, {1, 1}).stages[0];
  ASSERT_TRUE(StepOneLessOnHost(stage));
  EXPECT_EQ(stage.timing.groups_away_between_steps, 0);
  EXPECT_FALSE(StepOneLessOnHost(stage)) << "none is left";
  ASSERT_TRUE(StepOneMoreOnHost(stage));
  ASSERT_TRUE(StepOneMoreOnHost(stage));
  EXPECT_EQ(stage.timing.groups_away_between_steps, 2);
  EXPECT_FALSE(StepOneMoreOnHost(stage)) << "all do";
}

TEST(ExchangeSteps, SwapsWhatIsKeptWhereNothingElseIsLeft) {
  StageDraft stage = KeepingDraft(TwoWorkersOfMuchState(Bytes(4'000))).stages[0];
  ASSERT_TRUE(StepOneMoreOnHost(stage));
  EXPECT_EQ(stage.update, UpdatePlace::kHost);
  EXPECT_EQ(stage.optimizer_state, (std::vector{Placement::kHostSwap, Placement::kKeep}));
  EXPECT_EQ(stage.timing.groups_away_between_steps, 1);
  EXPECT_EQ(stage.groups_streamed, 0);
}

// As BestBroughtHome says it.
TEST(ExchangeSteps, CountsFromAllWhereAllAreAway) {
  StageDraft stage =
      OnHost(TwoWorkersOfMuchState(Bytes(4'000)), {SwapTiming::kAllGroups, 0}).stages[0];
  stage.optimizer_state[1] = Placement::kKeep;
  ASSERT_TRUE(StepOneMoreOnHost(stage));
  EXPECT_EQ(stage.timing.groups_away_between_steps, 2);
}

TEST(ExchangeSteps, LeaveStagesAloneThatUseLendersOrDrives) {
  for (const Placement other : {Placement::kPeerSwap, Placement::kNvmeSwap}) {
    StageDraft stage = OnHost(TwoWorkersOfMuchState(Bytes(4'000)), {1, 1}).stages[0];
    stage.optimizer_state[1] = other;
    EXPECT_FALSE(StepOneMoreOnHost(stage));
    EXPECT_FALSE(StepOneLessOnHost(stage));
  }
}

// What is away between steps and steps on the device goes on to do so.
TEST(ExchangeSteps, LeavesOnTheDeviceWhatStreams) {
  StageDraft stage = KeepingDraft(TwoWorkersOfMuchState(Bytes(4'000))).stages[0];
  std::fill(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kHostSwap);
  stage.timing.groups_away_between_steps = 1;
  EXPECT_FALSE(StepOneLessOnHost(stage));
  ASSERT_TRUE(StepOneMoreOnHost(stage));
  EXPECT_EQ(stage.groups_streamed, 1);
  EXPECT_EQ(stage.timing.groups_away_between_steps, 2);
}

// The second worker has room for state that the host stepped until then.
TEST(ExchangeSteps, TakeFromTheHostWhatHasRoom) {
  const PlanningProblem problem = TwoWorkersOfMuchState(Bytes(2'100));
  DraftSimulator simulator(problem);
  const auto start = TimeStagesHome(simulator, OnHost(problem, {1, 2}), {StageId(0), StageId(1)});
  ASSERT_TRUE(start.ok()) << start.status();
  ASSERT_TRUE(Fits(*start));
  const SimulatedDraft after = Exchanged(problem, start->draft);
  EXPECT_LT(after.score.step, start->score.step);
  EXPECT_LT(LayersOnHost(after.draft)[1], 2);
}

TEST(ExchangeSteps, AreNeverSlower) {
  for (const int64_t capacity : {1'500, 1'800, 2'100, 2'600, 3'200}) {
    const PlanningProblem problem = TwoWorkersOfMuchState(Bytes(capacity));
    for (const std::vector<int>& layers :
         {std::vector{0, 0}, {0, 2}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}) {
      Exchanged(problem, OnHost(problem, layers));
    }
  }
}

TEST(ExchangeSteps, BeginNoneBeyondTheSimulationsThatTheyHave) {
  const PlanningProblem problem = TwoWorkersOfMuchState(Bytes(2'100));
  const DraftPlan start = OnHost(problem, {2, 2});
  EXPECT_EQ(Exchanged(problem, start, /*simulations=*/0).draft, start);
}

}  // namespace
}  // namespace siphon
