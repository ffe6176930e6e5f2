// Searching tensor by tensor within layers.

#include "planner/search/first_tensors_search.h"

#include <gtest/gtest.h>

#include <vector>

#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// One worker, two layers, two microbatches, all forwards first. A layer saves 10 bytes that are
// made at once, 60 after a tenth of its 1,000 ns, and 30 at its end.
PlanningProblem TwoLayers(int64_t capacity, std::vector<SavedTensor> saved) {
  Topology topology;
  topology.devices.resize(1);
  const BytesPerSecond rate(100'000'000);
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .saved = std::move(saved)},
                                      2, LoweredSchedule("gpipe", 1, 2),
                                      WithHost(topology, 1, {.to_host = rate, .from_host = rate}));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(capacity));
  return problem;
}

const std::vector<SavedTensor> kInParts = {
    {"now", Bytes(10), 0}, {"soon", Bytes(60), 100'000}, {"last", Bytes(30), 1'000'000}};

// 400 bytes with everything kept, 260 with the first 70 of both layers dropped for the microbatch
// whose backward does not follow at once: 100 ns for each. Recomputation by itself drops whole
// layers, one for both microbatches, the other for one.
TEST(FirstTensors, AreComputedAgainWhereThatIsFasterThanWholeLayers) {
  const PlanningProblem problem = TwoLayers(260, kInParts);
  const auto whole = PlanRecompute(problem);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto tensors = PlanAuto(problem);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_LE(Total(tensors->simulated.peak[0]), Bytes(260));
  EXPECT_EQ(whole->simulated.step_time, Nanos(12'000 + 3'000));
  EXPECT_EQ(tensors->simulated.step_time, Nanos(12'000 + 200));
  bool some = false;
  for (const PlannedGroup& planned : tensors->memory.stages[0].groups) {
    some |= planned.group.first_tensors == 2 && planned.choice.placement == Placement::kRecompute;
  }
  EXPECT_TRUE(some);
}

TEST(FirstTensors, ChangeNothingWhereNothingIsKnownOfThem) {
  const PlanningProblem problem = TwoLayers(260, {{"all", Bytes(100)}});
  DraftSimulator simulator(problem);
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations[0] = draft.stages[0].activations[1] = Placement::kRecompute;
  const auto start = simulator.Run(draft);
  ASSERT_TRUE(start.ok()) << start.status();
  const int simulations = simulator.simulations();
  const auto found = SearchFirstTensors(simulator, *start, 100);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->draft, draft);
  EXPECT_EQ(simulator.simulations(), simulations);
}

// A start that does not fit stays one, or gets better; none gets worse, whatever it takes.
TEST(FirstTensors, AreNeverWorseThanTheStart) {
  for (const int64_t capacity : {120, 180, 260, 330, 390}) {
    SCOPED_TRACE(capacity);
    const PlanningProblem problem = TwoLayers(capacity, kInParts);
    for (const Placement placement : {Placement::kRecompute, Placement::kHostSwap}) {
      for (const int most : {0, 3, 200}) {
        DraftSimulator simulator(problem);
        DraftPlan draft = KeepingDraft(problem);
        draft.stages[0].activations[0] = placement;
        const auto start = simulator.Run(draft);
        ASSERT_TRUE(start.ok()) << start.status();
        const int before = simulator.simulations();
        const auto found = SearchFirstTensors(simulator, *start, most);
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_LE(found->score, start->score);
        EXPECT_LE(simulator.simulations() - before, most);
      }
    }
  }
}

}  // namespace
}  // namespace siphon
