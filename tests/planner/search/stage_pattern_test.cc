#include "planner/search/stage_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

using enum Placement;
using Placements = std::vector<Placement>;

// Two workers, of four layers and of two.
PlanningProblem FourLayersAndTwo() {
  PlanningProblem problem = TwoFullWorkers(Bytes(1'000));
  problem.profile.layers.resize(6);
  problem.partition.stages = {{0, 4}, {4, 6}};
  return problem;
}

DraftPlan Written(const PlanningProblem& problem, const StagePattern& pattern) {
  DraftPlan draft = KeepingDraft(problem);
  const PatternWriter writer(problem);
  for (int stage = 0; stage < 2; ++stage) writer.Write(pattern, stage, draft.stages[stage]);
  return draft;
}

// Twelve eighths of four layers: one and a half of four, six eighths of two.
TEST(StagePattern, MeansTheSameForStagesOfAnySize) {
  const PlanningProblem problem = FourLayersAndTwo();
  const DraftPlan draft = Written(problem, {.again = 12, .to_host = 8, .to_lenders = 4});
  EXPECT_EQ(draft.stages[0].activations,
            (Placements{kHostSwap, kPeerSwap, kRecompute, kRecompute}));
  EXPECT_EQ(draft.stages[0].shares[0], 8);
  EXPECT_EQ(draft.stages[0].shares[1], 4);
  EXPECT_EQ(draft.stages[0].shares[2], 4);
  EXPECT_EQ(draft.stages[0].shares[3], 8);
  EXPECT_EQ(draft.stages[1].activations, (Placements{kHostSwap, kRecompute}));
  EXPECT_EQ(draft.stages[1].shares[0], 4);
  EXPECT_EQ(draft.stages[1].shares[1], 6);
}

TEST(StagePattern, LeavesOutWhatIsTooMuch) {
  const PlanningProblem problem = FourLayersAndTwo();
  const DraftPlan draft = Written(problem, {.again = 40, .to_host = 40, .to_lenders = 40});
  for (const StageDraft& stage : draft.stages) {
    EXPECT_EQ(std::count(stage.activations.begin(), stage.activations.end(), kRecompute),
              std::ssize(stage.activations));
  }
}

// What is dropped of a layer's tensors: all of them, the first two, or the first one.
TEST(StagePattern, LeavesOutDropsFromTheLargestDown) {
  PlanningProblem problem = FourLayersAndTwo();
  for (LayerProfile& layer : problem.profile.layers) {
    layer.saved = {
        {"now", Bytes(60), 100'000}, {"soon", Bytes(20), 300'000}, {"last", Bytes(20), 1'000'000}};
  }
  std::vector<int> dropped;
  for (int left_out = 0; left_out <= 3; ++left_out) {
    const DraftPlan draft = Written(problem, {.again = 8, .drops_left_out = left_out});
    dropped.push_back(draft.stages[0].first_tensors[3]);
    EXPECT_EQ(draft.stages[0].first_tensors[0], 0) << "stays";
  }
  EXPECT_EQ(dropped, (std::vector<int>{0, 2, 1, 1}));
}

// Half of the state away: two layers of four, one of two. Of these half is home between steps: one,
// and none of the smaller stage but for rounding.
TEST(StagePattern, PartsOptimizerState) {
  const PlanningProblem problem = FourLayersAndTwo();
  const DraftPlan draft = Written(problem, {.state = 4,
                                            .host_steps = 1,
                                            .streamed = 1,
                                            .home = 2,
                                            .actions_before_step = 2,
                                            .actions_to_come_home = 3});
  const StageDraft& four = draft.stages[0];
  EXPECT_EQ(four.optimizer_state, (Placements{kKeep, kKeep, kHostSwap, kHostSwap}));
  EXPECT_EQ(four.update, UpdatePlace::kHost);
  EXPECT_EQ(four.groups_streamed, 1);
  EXPECT_EQ(four.timing.groups_away_between_steps, 1);
  EXPECT_TRUE(four.timing.home_beside_host);
  EXPECT_EQ(four.timing.actions_before_step, 2);
  EXPECT_EQ(four.timing.actions_to_come_home, 3);
  EXPECT_EQ(draft.stages[1].optimizer_state, (Placements{kKeep, kHostSwap}));
  EXPECT_EQ(draft.stages[1].timing.groups_away_between_steps, 0);
}

TEST(StagePattern, StepsOnTheDeviceWhereTheHostsTimeIsNotKnown) {
  PlanningProblem problem = FourLayersAndTwo();
  problem.host_step = Nanos(0);
  const DraftPlan draft = Written(problem, {.state = 8, .host_steps = 1, .streamed = 2});
  EXPECT_EQ(draft.stages[0].update, UpdatePlace::kDevice);
  EXPECT_EQ(draft.stages[0].groups_streamed, 0);
}

bool Names(const std::vector<PatternNumber>& numbers, int StagePattern::*number) {
  return std::any_of(numbers.begin(), numbers.end(),
                     [number](const PatternNumber& of) { return of.number == number; });
}

TEST(PatternNumbers, AreThoseThatMeanSomething) {
  PlanningProblem problem = FourLayersAndTwo();
  for (const auto number : {&StagePattern::to_lenders, &StagePattern::to_host, &StagePattern::state,
                            &StagePattern::host_steps}) {
    EXPECT_TRUE(Names(PatternNumbers(problem, 4), number));
  }
  problem.host_step = Nanos(0);
  EXPECT_FALSE(Names(PatternNumbers(problem, 4), &StagePattern::host_steps));
  problem.topology.links.clear();
  EXPECT_FALSE(Names(PatternNumbers(problem, 4), &StagePattern::to_lenders));
  problem.topology.switches.clear();
  EXPECT_FALSE(Names(PatternNumbers(problem, 4), &StagePattern::to_host));
  EXPECT_FALSE(Names(PatternNumbers(problem, 4), &StagePattern::state));
  EXPECT_TRUE(Names(PatternNumbers(problem, 4), &StagePattern::again));
}

}  // namespace
}  // namespace siphon
