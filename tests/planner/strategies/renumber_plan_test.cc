#include "planner/strategies/renumber_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "planner/canonical_devices.h"
#include "planner/strategies/harmony/harmony_search.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/planner/dice.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/planner/shuffled_devices.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

// Of six stages on a DGX-1, so that two devices have nothing but memory to lend.
PlanningProblem SixStages() {
  PlanningProblem problem = ProblemOf(GptLayer(), 12, LoweredSchedule("1f1b", 6, 8), Dgx1V100());
  SetCapacity(problem, Bytes(9 * kGiB));
  problem.host_step = Nanos(2'000'000'000);
  return problem;
}

TEST(PlanInCanonicalOrder, GivesAllNumberingsOfAServerTheSameStep) {
  constexpr int kRounds = kSanitized ? 1 : 3;
  const PlanningProblem problem = SixStages();
  Dice dice(3);
  int planned = 0;
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const auto first = strategy.plan(problem);
    for (int round = 0; round < kRounds; ++round) {
      PlanningProblem other = problem;
      other.topology = Renumbered(problem.topology, ShuffledDevices(8, dice));
      const auto there = strategy.plan(other);
      ASSERT_EQ(there.ok(), first.ok()) << strategy.name << ": " << there.status();
      if (!first.ok()) {
        EXPECT_EQ(there.status().code(), first.status().code()) << strategy.name;
        continue;
      }
      ++planned;
      EXPECT_EQ(there->simulated.step_time, first->simulated.step_time) << strategy.name;
      EXPECT_EQ(there->simulated.peak, first->simulated.peak) << strategy.name;
      EXPECT_EQ(there->simulated.host_peak, first->simulated.host_peak) << strategy.name;
      EXPECT_EQ(there->map, first->map) << strategy.name;
      EXPECT_EQ(there->schedule, first->schedule) << strategy.name;
    }
  }
  EXPECT_GE(planned, kRounds * 6);
}

// What is planned with the user's numbers is planned for the user's links.
TEST(PlanInCanonicalOrder, LendsOverTheLinksThereAre) {
  PlanningProblem problem = SixStages();
  Dice dice(5);
  problem.topology = Renumbered(problem.topology, ShuffledDevices(8, dice));
  const auto planned = FindMemoryStrategy("d2d_swap")->plan(problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  int stripes = 0;
  for (size_t stage = 0; stage < planned->memory.stages.size(); ++stage) {
    const DeviceId owner = planned->mapping.device_of_worker[stage];
    for (const PlannedGroup& group : planned->memory.stages[stage].groups) {
      for (const Stripe& stripe : group.choice.stripes) {
        ++stripes;
        EXPECT_TRUE(FindLink(problem.topology, owner, stripe.lender).has_value());
      }
    }
  }
  EXPECT_GT(stripes, 0);
}

TEST(PlanInCanonicalOrder, KeepsTheMapThatIsGiven) {
  PlanningProblem problem = SixStages();
  problem.topology =
      Renumbered(problem.topology, {DeviceId(7), DeviceId(1), DeviceId(6), DeviceId(0), DeviceId(3),
                                    DeviceId(2), DeviceId(5), DeviceId(4)});
  problem.mapping =
      DeviceMapping{{DeviceId(5), DeviceId(0), DeviceId(7), DeviceId(2), DeviceId(1), DeviceId(3)}};
  const auto planned = FindMemoryStrategy("recompute")->plan(problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->mapping, *problem.mapping);
  EXPECT_EQ(
      RenumberedProblem(problem, CanonicalOrder(problem.topology)).mapping->device_of_worker.size(),
      6);
}

TEST(PlanInCanonicalOrder, NamesDevicesAsTheUserDoes) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  problem.topology.devices[0].memory = Bytes(50);  // after device 1, which has no size
  const auto named = [&](absl::string_view message) {
    return PlanInCanonicalOrder(
               problem,
               [&](const PlanningProblem&) {
                 return absl::StatusOr<PlannedStep>(absl::ResourceExhaustedError(message));
               })
        .status();
  };
  EXPECT_EQ(named("device 0 and device 1, of device 12; a device is full").message(),
            "device 1 and device 0, of device 12; a device is full");
  EXPECT_EQ(named("device 0").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(named("at device ").message(), "at device ");
}

TEST(SearchHarmony, GivesAllNumberingsOfAServerTheSameStep) {
  const HarmonyTools tools{.build_schedule = BuildSchedule};
  PlanningProblem problem = SixStages();
  SetCapacity(problem, Bytes(12 * kGiB));
  const auto first = SearchHarmony(problem, tools);
  ASSERT_TRUE(first.ok()) << first.status();
  Dice dice(9);
  for (int round = 0; round < (kSanitized ? 1 : 3); ++round) {
    problem.topology = Renumbered(problem.topology, ShuffledDevices(8, dice));
    const auto there = SearchHarmony(problem, tools);
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_EQ(there->planned.simulated.step_time, first->planned.simulated.step_time);
    const auto again = PlanHarmony(there->problem, there->choice);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->mapping, there->planned.mapping);
    EXPECT_EQ(again->simulated, there->planned.simulated);
  }
}

}  // namespace
}  // namespace siphon
