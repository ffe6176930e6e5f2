#include "planner/search/uniform_starts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Two workers of three layers: 40 bytes of activations, 30 of optimizer state each.
PlanningProblem TwoUniformWorkers(Bytes capacity) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(100),
                                       .input_backward = Nanos(100),
                                       .weight_backward = Nanos(100),
                                       .optimizer = Nanos(10),
                                       .optimizer_state = Bytes(30),
                                       .boundary = Bytes(5),
                                       .saved = {{"all", Bytes(40)}}},
                                      6, LoweredSchedule("zb_h1", 2, 4), TwoLinkedDevices());
  problem.granule = Bytes(1);
  SetCapacity(problem, capacity);
  return problem;
}

absl::StatusOr<SimulatedDraft> BestOf(DraftSimulator& simulator) {
  const auto kept = DraftKeep(simulator);
  EXPECT_TRUE(kept.ok()) << kept.status();
  return BestUniformStart(simulator, *kept);
}

// All drafts of that kind, one after the other; none: none fits.
std::optional<Nanos> LeastStep(DraftSimulator& simulator, const DraftPlan& kept) {
  constexpr SwapTiming kBoth[] = {
      {.forwards_to_leave = 2, .actions_to_come_back = 2, .actions_before_step = 2},
      {.forwards_to_leave = 0, .actions_to_come_back = 0, .groups_ahead = 0}};
  std::optional<Nanos> least;
  for (int draft_index = 0; draft_index < 2 * 4 * 4; ++draft_index) {
    DraftPlan draft = kept;
    for (StageDraft& stage : draft.stages) {
      stage.timing = kBoth[draft_index % 2];
      for (int layer = 0; layer < 3; ++layer) {
        if (3 - layer <= draft_index / 2 % 4) stage.activations[layer] = Placement::kRecompute;
        if (3 - layer <= draft_index / 8) stage.optimizer_state[layer] = Placement::kHostSwap;
      }
    }
    const auto run = simulator.Run(draft);
    EXPECT_TRUE(run.ok()) << run.status();
    if (Fits(*run) && (!least || run->score.step < *least)) least = run->score.step;
  }
  return least;
}

TEST(BestUniformStart, IsTheBestOfAllUniformDrafts) {
  int found = 0;
  for (int capacity = 150; capacity <= 420; capacity += 30) {
    const PlanningProblem problem = TwoUniformWorkers(Bytes(capacity));
    DraftSimulator simulator(problem);
    const auto best = BestOf(simulator);
    ASSERT_TRUE(best.ok()) << best.status();
    const std::optional<Nanos> least = LeastStep(simulator, KeepingDraft(problem));
    EXPECT_EQ(Fits(*best), least.has_value()) << capacity;
    if (!least) continue;
    EXPECT_EQ(best->score.step, *least) << capacity;
    ++found;
  }
  EXPECT_GE(found, 5) << "of 10";
}

TEST(BestUniformStart, LeavesStateWhereThereIsNoHost) {
  PlanningProblem problem = TwoUniformWorkers(Bytes(330));
  problem.topology.switches.clear();
  DraftSimulator simulator(problem);
  const auto best = BestOf(simulator);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_FALSE(Uses(best->draft, Placement::kHostSwap));
  EXPECT_TRUE(Uses(best->draft, Placement::kRecompute));
}

TEST(BestUniformStart, TakesSeveralLayersAtATimeWhereThereAreMany) {
  PlanningProblem problem = GptOnDgx1(125);
  DraftSimulator simulator(problem);
  const int before = simulator.simulations();
  const auto best = BestOf(simulator);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_LE(simulator.simulations() - before, 40);
}

}  // namespace
}  // namespace siphon
