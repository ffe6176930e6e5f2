#include "planner/strategies/plan_on_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/single_drafts.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

// Four workers with two layers each on four devices, two behind each uplink. They hold 8000, 6000,
// 4000 and 2000 bytes of activations, and may hold 5000: workers 0 and 1 swap a layer or two of
// 1000 bytes in each 6000 ns of the steady state. An uplink takes 4000 ns for one.
PlanningProblem TwoOfFourSwap() {
  constexpr BytesPerSecond kUplink{250'000'000};
  Topology topology = UniformTopology(4, kByteANano, Nanos(0));
  for (TopologyLink& link : topology.links) link.wires = 1;
  PlanningProblem problem =
      ProblemOf({.forward = Nanos(1000),
                 .input_backward = Nanos(1000),
                 .weight_backward = Nanos(1000),
                 .boundary = Bytes(1),
                 .saved = {{"all", Bytes(1000)}}},
                8, LoweredSchedule("1f1b", 4, 8),
                WithHost(std::move(topology), 2, {.to_host = kUplink, .from_host = kUplink}));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(5'000));
  return problem;
}

bool ShareAnUplink(const PlannedStep& planned, int a, int b) {
  const auto& devices = planned.mapping.device_of_worker;
  return devices[a].value / 2 == devices[b].value / 2;
}

absl::StatusOr<PlannedStep> PlanOn(PlanningProblem problem, const MemoryStrategy& strategy,
                                   const DeviceMapping& mapping) {
  problem.mapping = mapping;
  return strategy.plan(problem);
}

TEST(PlanOnBestMap, PutsStagesThatSwapBehindDifferentUplinks) {
  const PlanningProblem problem = TwoOfFourSwap();
  const MemoryStrategy host_swap = FindMemoryStrategy("host_swap").value();
  const PlannedStep planned = host_swap.plan(problem).value();
  EXPECT_FALSE(ShareAnUplink(planned, 0, 1));
  const PlannedStep in_order = PlanOn(problem, host_swap, IdentityMapping(4)).value();
  EXPECT_LT(planned.simulated.step_time, in_order.simulated.step_time);
  ASSERT_TRUE(planned.map.has_value());
  EXPECT_TRUE(planned.map->proven);
  EXPECT_EQ(planned.map->score, MappingScore::kStepTime);
}

TEST(PlanOnBestMap, LeavesAGivenMapAlone) {
  const MemoryStrategy host_swap = FindMemoryStrategy("host_swap").value();
  const PlannedStep planned = PlanOn(TwoOfFourSwap(), host_swap, IdentityMapping(4)).value();
  EXPECT_EQ(planned.mapping, IdentityMapping(4));
  EXPECT_FALSE(planned.map.has_value());
}

TEST(PlanOnBestMap, DoesNotSearchWhereAnyPlanIsEnough) {
  PlanningProblem problem = TwoOfFourSwap();
  problem.goal = PlanningGoal::kAnyThatFits;
  const PlannedStep planned = FindMemoryStrategy("host_swap")->plan(problem).value();
  EXPECT_FALSE(planned.map.has_value());
}

// Each strategy is as fast as on devices in order, or faster, and `auto` as fast as each of them.
TEST(MemoryStrategies, LoseNothingToAMap) {
  PlanningProblem problem = TwoOfFourSwap();
  problem.host_step = Nanos(1'000);
  for (const int64_t capacity : {5'000, 9'000}) {
    SetCapacity(problem, Bytes(capacity));
    std::optional<Nanos> fastest;
    for (const MemoryStrategy& strategy : MemoryStrategies()) {
      if (kSanitized && strategy.name == "auto") continue;  // takes minutes there
      const auto in_order = PlanOn(problem, strategy, IdentityMapping(4));
      const auto planned = strategy.plan(problem);
      ASSERT_EQ(planned.ok(), in_order.ok()) << strategy.name;
      if (!planned.ok()) continue;
      EXPECT_LE(planned->simulated.step_time, in_order->simulated.step_time) << strategy.name;
      if (strategy.name != "auto") {
        fastest =
            std::min(fastest.value_or(planned->simulated.step_time), planned->simulated.step_time);
        continue;
      }
      ASSERT_TRUE(fastest.has_value());
      EXPECT_LE(planned->simulated.step_time, *fastest);
    }
  }
}

// A plan in hand that is slower than what a strategy makes on its own map gives way to it.
TEST(BestOnOwnMaps, TakesWhatIsFasterOnAnotherMap) {
  const PlanningProblem problem = TwoOfFourSwap();
  DraftSimulator simulator(problem);
  const SimulatedDraft kept = DraftKeep(simulator).value();
  const std::vector<SingleDraft> singles = SingleDrafts(simulator, kept).value();
  const MemoryStrategy host_swap = FindMemoryStrategy("host_swap").value();
  const auto in_order = PlanOn(problem, host_swap, IdentityMapping(4));
  const auto best = BestOnOwnMaps(problem, kept, singles, in_order);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_LE(best->simulated.step_time, host_swap.plan(problem)->simulated.step_time);
  EXPECT_LT(best->simulated.step_time, in_order->simulated.step_time);
  const auto again = BestOnOwnMaps(problem, kept, singles, best);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->mapping, best->mapping);
  EXPECT_EQ(again->simulated.step_time, best->simulated.step_time);
}

}  // namespace
}  // namespace siphon
