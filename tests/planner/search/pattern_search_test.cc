#include "planner/search/pattern_search.h"

#include <gtest/gtest.h>

#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

absl::StatusOr<SimulatedDraft> BestOf(const PlanningProblem& problem, int simulations) {
  DraftSimulator simulator(problem);
  simulator.LendBy(LendingRule::kOverTime);
  auto best = BestPatterns(simulator, KeepingDraft(problem), simulations, /*seed=*/1);
  // The last draft may take several.
  EXPECT_LE(simulator.simulations(), simulations + 20);
  return best;
}

// Three workers, all of whose forwards come first; the last one's layers take a fifth longer and
// save as much more. Where all compute as much again, the last one sets the pace; the others have
// time to compute more again than they must, and so have room for what it saves.
PlanningProblem SlowLastWorker(Bytes capacity) {
  const LayerProfile layer{.forward = Nanos(1000),
                           .input_backward = Nanos(1000),
                           .weight_backward = Nanos(1000),
                           .saved = {{"all", Bytes(100)}}};
  Topology topology = UniformTopology(3, kByteANano, Nanos(0));
  for (TopologyLink& link : topology.links) link.wires = 1;
  PlanningProblem problem =
      ProblemOf(layer, 9, LoweredSchedule("gpipe", 3, 6), std::move(topology));
  for (size_t index = 6; index < 9; ++index) {
    LayerProfile& slow = problem.profile.layers[index];
    slow.forward = slow.input_backward = slow.weight_backward = Nanos(1200);
    slow.saved.front().bytes = Bytes(120);
  }
  problem.granule = Bytes(1);
  SetCapacity(problem, capacity);
  return problem;
}

TEST(PatternSearch, LetsSomeComputeMoreAgainThanTheyMustToLend) {
  const PlanningProblem problem = SlowLastWorker(Bytes(1'300));
  const auto best = BestOf(problem, 1'500);
  ASSERT_TRUE(best.ok()) << best.status();
  ASSERT_TRUE(Fits(*best));
  const auto recompute = PlanRecompute(problem);
  ASSERT_TRUE(recompute.ok()) << recompute.status();
  EXPECT_LT(best->score.step.value, recompute->simulated.step_time.value * 97 / 100);
  EXPECT_TRUE(Uses(best->draft, Placement::kPeerSwap));
}

TEST(PatternSearch, FindsTheSameAgain) {
  const PlanningProblem problem = TwoFullWorkers(Bytes(900));
  const auto one = BestOf(problem, 600);
  const auto other = BestOf(problem, 600);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(Fits(*one));
  EXPECT_EQ(one->draft, other->draft);
}

TEST(PatternSearch, ComesNearerToFittingWhereNothingFits) {
  const PlanningProblem problem = TwoFullWorkers(Bytes(60));
  const auto best = BestOf(problem, 600);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_FALSE(Fits(*best));
  DraftSimulator simulator(problem);
  const auto kept = simulator.Run(KeepingDraft(problem));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_LT(best->score.excess, kept->score.excess);
}

}  // namespace
}  // namespace siphon
