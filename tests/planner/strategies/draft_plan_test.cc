#include "planner/strategies/draft_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planner/strategies/planning_testing.h"

namespace siphon {
namespace {

// One worker, five layers of 10 bytes of activations and 4 of each other kind.
PlanningProblem FiveLayers() {
  return ProblemOf({.forward = Nanos(1),
                    .parameters = Bytes(4),
                    .gradients = Bytes(4),
                    .optimizer_state = Bytes(4),
                    .boundary = Bytes(2),
                    .saved = {{"all", Bytes(10)}}},
                   5, LoweredSchedule("1f1b", 1, 2), {});
}

// "activations 0-1 recompute", one a group.
std::vector<std::string> GroupTexts(const StagePlan& stage) {
  std::vector<std::string> texts;
  for (const auto& [group, choice] : stage.groups) {
    texts.push_back(absl::StrCat(GroupKindName(group.kind), " ", group.layers.begin, "-",
                                 group.layers.end - 1, " ", PlacementName(choice.placement)));
  }
  return texts;
}

constexpr Placement kKept = Placement::kKeep;
constexpr Placement kAgain = Placement::kRecompute;
constexpr Placement kToHost = Placement::kHostSwap;
constexpr Placement kToPeers = Placement::kPeerSwap;

TEST(PlanOf, JoinsNeighboursWithOnePlacement) {
  const PlanningProblem problem = FiveLayers();
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations = {kToHost, kToHost, kKept, kAgain, kAgain};
  draft.stages[0].recompute_run = 0;
  draft.stages[0].optimizer_state[4] = kToHost;
  const MemoryPlan plan = PlanOf(problem, draft);
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_THAT(GroupTexts(plan.stages[0]),
              testing::ElementsAre("activations 0-0 host_swap", "activations 1-1 host_swap",
                                   "activations 2-2 keep", "activations 3-4 recompute",
                                   "parameters 0-4 keep", "gradients 0-4 keep",
                                   "optimizer_state 0-3 keep", "optimizer_state 4-4 host_swap"));
  EXPECT_EQ(plan.stages[0].groups[3].group.input, Bytes(2)) << "one input for both layers";
}

TEST(PlanOf, CutsStripesByWhatEachLenderTakes) {
  PlanningProblem problem = FiveLayers();
  problem.granule = Bytes(1);
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations = {kToPeers, kKept, kKept, kKept, kKept};
  draft.lenders[0] = {{DeviceId(1), 3}, {DeviceId(2), 2}};
  EXPECT_THAT(PlanOf(problem, draft).stages[0].groups[0].choice.stripes,
              testing::ElementsAre(Stripe{DeviceId(1), Bytes(6)}, Stripe{DeviceId(2), Bytes(4)}));
}

TEST(PlanOf, KeepsWhatNoLenderTakes) {
  const PlanningProblem problem = FiveLayers();
  DraftPlan draft = KeepingDraft(problem);
  const MemoryPlan kept = PlanOf(problem, draft);
  draft.stages[0].activations.assign(5, kToPeers);
  EXPECT_EQ(PlanOf(problem, draft), kept);
}

TEST(Replace, SendsOptimizerStateToTheHostWhereActivationsAreRecomputed) {
  DraftPlan draft = KeepingDraft(FiveLayers());
  draft.stages[0].activations[1] = kToPeers;
  draft.stages[0].optimizer_state[2] = kToPeers;
  EXPECT_TRUE(Uses(draft, kToPeers));
  const DraftPlan replaced = Replace(draft, kToPeers, kAgain);
  EXPECT_FALSE(Uses(replaced, kToPeers));
  EXPECT_EQ(replaced.stages[0].activations[1], kAgain);
  EXPECT_EQ(replaced.stages[0].optimizer_state[2], kToHost);
}

}  // namespace
}  // namespace siphon
