#include "planner/strategies/mpress/mpress_assign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/lowering/make_groups.h"
#include "tests/planner/strategies/mpress/mpress_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

// One stage each for two workers, three layers of 100 bytes each.
struct Assigned {
  PlanningProblem problem = EqualLayers(2, 3, 4);
  MpressFacts facts;
  Assigned(int64_t host_rate, int64_t slot) {
    problem.transport.host_rate = BytesPerSecond(host_rate * 1'000'000'000);
    const MemoryPlan keep = KeepEverything(problem.profile, problem.partition);
    for (const StagePlan& stage : keep.stages) {
      facts.live_intervals.emplace_back(stage.groups.size(), Nanos(1'000));
    }
    // Of the activations; stage 1's are short.
    facts.live_intervals[0] = {Nanos(90), Nanos(60), Nanos(30)};
    facts.live_intervals[1] = {Nanos(50), Nanos(20), Nanos(0)};
    for (auto& stage : facts.live_intervals) stage.resize(keep.stages[0].groups.size());
    facts.slot = Nanos(slot);
  }
  // Of the activations of a stage.
  std::vector<Placement> Placements(const std::vector<bool>& saves, int stage) const {
    const MemoryPlan plan =
        AssignWithoutPeers(problem, IdentityMapping(2),
                           KeepEverything(problem.profile, problem.partition), facts, saves);
    std::vector<Placement> placements;
    for (const auto& [group, choice] : plan.stages[stage].groups) {
      if (group.kind == GroupKind::kActivations) placements.push_back(choice.placement);
    }
    return placements;
  }
};

constexpr Placement kKeep = Placement::kKeep;
constexpr Placement kHost = Placement::kHostSwap;
constexpr Placement kRecompute = Placement::kRecompute;

// A swap takes 50 ns, in both directions; recomputation 10.
TEST(AssignWithoutPeers, SwapsWhatIsHiddenAndRecomputesTheRest) {
  const Assigned assigned(4, 1'000);
  EXPECT_THAT(assigned.Placements({true, true}, 0), ElementsAre(kHost, kHost, kRecompute));
  EXPECT_THAT(assigned.Placements({true, true}, 1), ElementsAre(kHost, kRecompute, kRecompute));
}

TEST(AssignWithoutPeers, LeavesOtherWorkersAlone) {
  const Assigned assigned(4, 1'000);
  EXPECT_THAT(assigned.Placements({false, true}, 0), ElementsAre(kKeep, kKeep, kKeep));
  EXPECT_THAT(assigned.Placements({false, true}, 1), ElementsAre(kHost, kRecompute, kRecompute));
}

// A copy takes 25 ns of the uplink; of 60 two fit, those of the longest intervals.
TEST(AssignWithoutPeers, GivesTheUplinkToTheLongestIntervals) {
  const Assigned assigned(4, 60);
  EXPECT_THAT(assigned.Placements({true, true}, 0), ElementsAre(kHost, kHost, kRecompute));
  EXPECT_THAT(assigned.Placements({true, true}, 1),
              ElementsAre(kRecompute, kRecompute, kRecompute));
  const Assigned tighter(4, 49);
  EXPECT_THAT(tighter.Placements({true, true}, 0), ElementsAre(kHost, kRecompute, kRecompute));
}

// 8 ns a swap, less than recomputation: swapped even where nothing hides it.
TEST(AssignWithoutPeers, SwapsWhereThatAddsLess) {
  const Assigned assigned(25, 1'000);
  EXPECT_THAT(assigned.Placements({true, true}, 1), ElementsAre(kHost, kHost, kHost));
}

TEST(SendOptimizerToHost, TakesTheLastLayersFirst) {
  const PlanningProblem problem = EqualLayers(2, 3, 4);
  MemoryPlan plan = KeepEverything(problem.profile, problem.partition);
  EXPECT_EQ(SendOptimizerToHost(problem.schedule, WorkerId(1), Bytes(3), plan), Bytes(4));
  std::vector<int> gone;
  for (const StagePlan& stage : plan.stages) {
    for (const auto& [group, choice] : stage.groups) {
      if (choice.placement == kHost) gone.push_back(group.layers.begin);
    }
  }
  EXPECT_THAT(gone, ElementsAre(4, 5));
  EXPECT_EQ(SendOptimizerToHost(problem.schedule, WorkerId(1), Bytes(99), plan), Bytes(2));
  EXPECT_EQ(SendOptimizerToHost(problem.schedule, WorkerId(1), Bytes(99), plan), Bytes(0));
}

TEST(RecomputeInstead, LeavesNoActivationsToTheHost) {
  const PlanningProblem problem = EqualLayers(2, 1, 4);
  MemoryPlan plan = KeepEverything(problem.profile, problem.partition);
  EXPECT_EQ(RecomputeInstead(problem.schedule, WorkerId(0), 9, plan), 0);
  plan.stages[0].groups[0].choice.placement = kHost;
  SendOptimizerToHost(problem.schedule, WorkerId(0), Bytes(1), plan);
  EXPECT_EQ(RecomputeInstead(problem.schedule, WorkerId(0), 0, plan), 0);
  EXPECT_EQ(RecomputeInstead(problem.schedule, WorkerId(0), 9, plan), 1);
  EXPECT_EQ(plan.stages[0].groups[0].choice.placement, kRecompute);
  EXPECT_EQ(plan.stages[0].groups.back().choice.placement, kHost);
}

}  // namespace
}  // namespace siphon
