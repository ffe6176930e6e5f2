// Steps that workers exchange with the host.

#include "planner/search/exchange_steps.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/search/time_state_home.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

constexpr int kMany = 10'000;

// Two workers of two layers, a microsecond a forward of a layer, two a backward; the host steps a
// layer in ten, and its state is copied in one. Of the first worker two microbatches are live at
// once, of the second one.
PlanningProblem TwoWorkers(Bytes capacity) {
  PlanningProblem problem = ProblemOf(LayerOfMuchState(), 4, LoweredSchedule("1f1b", 2, 4),
                                      WithHost(UniformTopology(2, kByteANano, Nanos(0)), 1,
                                               {.to_host = kByteANano, .from_host = kByteANano}));
  problem.granule = Bytes(1);
  problem.host_step = Nanos(40'000);
  SetCapacity(problem, capacity);
  return problem;
}

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
    const auto swapped = static_cast<int>(std::count(
        stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kHostSwap));
    const bool on_host = stage.update == UpdatePlace::kHost;
    const int away = std::min(swapped, stage.timing.groups_away_between_steps);
    layers.push_back(on_host ? away - stage.groups_streamed : 0);
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
  const PlanningProblem problem = TwoWorkers(Bytes(4'000));
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
  StageDraft stage = KeepingDraft(TwoWorkers(Bytes(4'000))).stages[0];
  ASSERT_TRUE(StepOneMoreOnHost(stage));
  EXPECT_EQ(stage.update, UpdatePlace::kHost);
  EXPECT_EQ(stage.optimizer_state, (std::vector{Placement::kHostSwap, Placement::kKeep}));
  EXPECT_EQ(stage.timing.groups_away_between_steps, 1);
  EXPECT_EQ(stage.groups_streamed, 0);
}

TEST(ExchangeSteps, LeaveStagesAloneThatUseLendersOrDrives) {
  for (const Placement other : {Placement::kPeerSwap, Placement::kNvmeSwap}) {
    StageDraft stage = OnHost(TwoWorkers(Bytes(4'000)), {1, 1}).stages[0];
    stage.optimizer_state[1] = other;
    EXPECT_FALSE(StepOneMoreOnHost(stage));
    EXPECT_FALSE(StepOneLessOnHost(stage));
  }
}

// What is away between steps and steps on the device goes on to do so.
TEST(ExchangeSteps, LeavesOnTheDeviceWhatStreams) {
  StageDraft stage = KeepingDraft(TwoWorkers(Bytes(4'000))).stages[0];
  std::fill(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kHostSwap);
  stage.timing.groups_away_between_steps = 1;
  EXPECT_FALSE(StepOneLessOnHost(stage));
  ASSERT_TRUE(StepOneMoreOnHost(stage));
  EXPECT_EQ(stage.groups_streamed, 1);
  EXPECT_EQ(stage.timing.groups_away_between_steps, 2);
}

// The second worker has room for both of its layers' state, the first one for none of its: the host
// has as many steps as before, but no state comes in behind the last backward.
TEST(ExchangeSteps, GiveTheHostWhatHasNoRoomForWhatHas) {
  const PlanningProblem problem = TwoWorkers(Bytes(2'100));
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
    const PlanningProblem problem = TwoWorkers(Bytes(capacity));
    for (const std::vector<int>& layers :
         {std::vector{0, 0}, {0, 2}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}) {
      Exchanged(problem, OnHost(problem, layers));
    }
  }
}

TEST(ExchangeSteps, BeginNoneBeyondTheSimulationsThatTheyHave) {
  const PlanningProblem problem = TwoWorkers(Bytes(2'100));
  const DraftPlan start = OnHost(problem, {2, 2});
  EXPECT_EQ(Exchanged(problem, start, /*simulations=*/0).draft, start);
}

}  // namespace
}  // namespace siphon
