// Layers that are computed again before their backward.

#include "planner/search/made_early.h"

#include <gtest/gtest.h>

#include <vector>

#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Two workers with one layer each and no way but to compute again.
PlanningProblem TwoStages(Bytes capacity) {
  Topology topology;
  topology.devices.resize(2);
  const LayerProfile layer{.forward = Nanos(1000),
                           .input_backward = Nanos(1000),
                           .weight_backward = Nanos(1000),
                           .saved = {{"all", Bytes(10)}}};
  PlanningProblem problem =
      ProblemOf(layer, 2, LoweredSchedule("gpipe", 2, 2), UniformTopology(2, kByteANano, Nanos(0)));
  for (TopologyLink& link : problem.topology.links) link.wires = 1;
  problem.granule = Bytes(1);
  SetCapacity(problem, capacity);
  return problem;
}

DraftPlan Recomputing(const PlanningProblem& problem, int layers_made_early) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    stage.activations.assign(stage.activations.size(), Placement::kRecompute);
    stage.layers_made_early = layers_made_early;
  }
  return draft;
}

// F0 F1 of 1 us on both, worker 1 a microbatch later; then B0 and B1 of 2 us with 1 us to compute
// again before each on worker 1, and, of worker 0, B0 when worker 1 is through with its own:
// within its backward the layer takes 1 us more there, before it nothing.
TEST(MadeEarly, HidesWhereTheWorkerWaitsForItsGradient) {
  const PlanningProblem problem = TwoStages(Bytes(100));
  DraftSimulator simulator(problem);
  const auto within = simulator.Run(Recomputing(problem, 0));
  const auto early = simulator.Run(Recomputing(problem, 1));
  ASSERT_TRUE(within.ok() && early.ok()) << within.status() << early.status();
  EXPECT_FALSE(MakesEarly(within->draft));
  EXPECT_TRUE(MakesEarly(early->draft));
  // Worker 1: 1 + 2 forwards, (1 + 2) + (1 + 2) backwards, then B1 of worker 0.
  EXPECT_EQ(early->score.step, Nanos(3'000 + 6'000 + 2'000));
  EXPECT_EQ(within->score.step, Nanos(3'000 + 6'000 + 3'000));
  const auto best = BestMadeEarly(simulator, *within, EarlyStarts::kFew);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->score.step, early->score.step);
}

TEST(MadeEarly, ChangesHowManyLayersAndHowLongBefore) {
  const PlanningProblem problem = TwoStages(Bytes(100));
  const DraftPlan draft = Recomputing(problem, 1);
  const std::vector<StageId> first = {StageId(0)};
  bool none = false;
  bool longer = false;
  for (const DraftPlan& change : ChangesOfMadeEarly(draft, first)) {
    EXPECT_NE(change, draft);
    EXPECT_EQ(change.stages[1], draft.stages[1]);
    none |= change.stages[0].layers_made_early == 0;
    longer |= change.stages[0].actions_made_early == 1;
  }
  EXPECT_TRUE(none && longer);
  EXPECT_TRUE(ChangesOfMadeEarly(KeepingDraft(problem), first).empty());
}

TEST(MadeEarly, IsNothingWhereNothingIsComputedAgain) {
  const PlanningProblem problem = TwoStages(Bytes(100));
  DraftSimulator simulator(problem);
  const auto kept = simulator.Run(KeepingDraft(problem));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(
      absl::IsResourceExhausted(BestMadeEarly(simulator, *kept, EarlyStarts::kFew).status()));
}

}  // namespace
}  // namespace siphon
