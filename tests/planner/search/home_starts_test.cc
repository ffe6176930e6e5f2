#include "planner/search/home_starts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/search/recompute_draft.h"
#include "planner/search/state_home.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

std::vector<SimulatedDraft> StartsOf(const PlanningProblem& problem, int simulations = 2'000) {
  DraftSimulator simulator(problem);
  auto starts = HomeStarts(simulator, IdentityMapping(2), simulations);
  EXPECT_TRUE(starts.ok()) << starts.status();
  // A bisection that has begun comes to its end.
  EXPECT_LE(simulator.simulations(), simulations + 2 * 16);
  return *std::move(starts);
}

int CountOf(const std::vector<Placement>& layers, Placement placement) {
  return static_cast<int>(std::count(layers.begin(), layers.end(), placement));
}

// Whatever fits between one byte less than everything and hardly anything: one kind is alike on
// all stages in each start, and the other as little as the worker needs.
TEST(HomeStarts, FitWithOneKindAlike) {
  int found = 0;
  for (int capacity = 500; capacity <= 1'300; capacity += 100) {
    const std::vector<SimulatedDraft> starts = StartsOf(TwoFullWorkers(Bytes(capacity)));
    bool state_alike = false;
    bool recompute_alike = false;
    for (const SimulatedDraft& start : starts) {
      EXPECT_TRUE(Fits(start)) << capacity;
      EXPECT_TRUE(HasStateHome(start.draft)) << capacity;
      const StageDraft& a = start.draft.stages.front();
      const StageDraft& b = start.draft.stages.back();
      state_alike |= CountOf(a.optimizer_state, Placement::kHostSwap) ==
                     CountOf(b.optimizer_state, Placement::kHostSwap);
      recompute_alike |= CountOf(a.activations, Placement::kRecompute) ==
                         CountOf(b.activations, Placement::kRecompute);
    }
    if (starts.size() < 2) continue;
    ++found;
    EXPECT_TRUE(state_alike) << capacity;
    EXPECT_TRUE(recompute_alike) << capacity;
  }
  EXPECT_GE(found, 5);
}

// 1280 + 80 bytes kept. With 1000 a worker that only computes again has to do so for three layers,
// one that only sends state away waits for it at both ends of the step.
TEST(HomeStarts, AreFasterThanEitherKindAlone) {
  const PlanningProblem problem = TwoFullWorkers(Bytes(1'000));
  DraftSimulator simulator(problem);
  const auto again = DraftRecompute(simulator);
  const auto away = DraftHostSwap(simulator);
  ASSERT_TRUE(again.ok() && away.ok()) << again.status() << away.status();
  const std::vector<SimulatedDraft> starts = StartsOf(problem);
  ASSERT_FALSE(starts.empty());
  const SimulatedDraft& best = *std::min_element(
      starts.begin(), starts.end(),
      [](const SimulatedDraft& a, const SimulatedDraft& b) { return a.score < b.score; });
  ASSERT_TRUE(Fits(*again));
  EXPECT_LT(best.score.step, again->score.step);
  ASSERT_TRUE(Fits(*away));
  EXPECT_LT(best.score.step, away->score.step);
}

TEST(HomeStarts, AreTheSameEachTime) {
  const PlanningProblem problem = TwoFullWorkers(Bytes(800));
  const std::vector<SimulatedDraft> once = StartsOf(problem);
  const std::vector<SimulatedDraft> again = StartsOf(problem);
  ASSERT_EQ(once.size(), again.size());
  for (size_t start = 0; start < once.size(); ++start) {
    EXPECT_EQ(once[start].draft, again[start].draft);
  }
}

TEST(HomeStarts, AreNoneWithoutAHostOrStateOrTime) {
  PlanningProblem problem = TwoFullWorkers(Bytes(1'000));
  EXPECT_TRUE(StartsOf(problem, 0).empty());
  for (LayerProfile& layer : problem.profile.layers) layer.optimizer_state = Bytes(0);
  EXPECT_TRUE(StartsOf(problem).empty());
  problem = TwoFullWorkers(Bytes(1'000));
  problem.topology = UniformTopology(2, kByteANano, Nanos(0));
  EXPECT_TRUE(StartsOf(problem).empty());
}

}  // namespace
}  // namespace siphon
