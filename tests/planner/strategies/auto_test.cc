#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/drafts/search_effort.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/validate_schedule.h"
#include "tests/planner/dice.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

absl::StatusOr<PlannedStep> PlanWith(absl::string_view strategy, const PlanningProblem& problem) {
  const auto found = FindMemoryStrategy(strategy);
  if (!found.ok()) return found.status();
  return found->plan(problem);
}

BytesPerSecond GigabytesPerSecond(int rate) { return BytesPerSecond(rate * 1'000'000'000LL); }

Topology SmallServer(int devices, Dice& dice) {
  Topology topology =
      dice.Roll(0, 1) == 0
          ? UniformTopology(devices, GigabytesPerSecond(dice.Roll(1, 8)), Nanos(5))
          : NvswitchTopology(devices, GigabytesPerSecond(dice.Roll(2, 8)), Nanos(5));
  for (TopologyLink& link : topology.links) link.wires = 1;
  for (TopologyDevice& device : topology.devices) device.memory = Bytes(2000);
  const BytesPerSecond host = GigabytesPerSecond(dice.Roll(1, 3));
  return WithHost(topology, 2, {.to_host = host, .from_host = host, .latency = Nanos(10)});
}

// Two of them, in each of which tensors stay.
Topology TwoSmallServers(int devices, Dice& dice) {
  Topology server = SmallServer((devices + 1) / 2, dice);
  server.host_memory = Bytes(dice.Roll(500, 5000));
  return SeveralServers(server, 2, {GigabytesPerSecond(dice.Roll(1, 3)), Nanos(20)});
}

// Two or three workers, three layers a stage, and less memory than they would like.
PlanningProblem SmallProblem(uint32_t seed) {
  Dice dice(seed);
  constexpr const char* kSchedules[] = {"1f1b", "gpipe", "zb_h1", "interleaved_1f1b"};
  const int workers = dice.Roll(2, 3);
  const Schedule schedule =
      LoweredSchedule(kSchedules[dice.Roll(0, 3)], workers, workers * dice.Roll(2, 3));
  const int layers = 3 * StageCount(schedule);
  PlanningProblem problem =
      ProblemOf({.forward = Nanos(dice.Roll(50, 200)),
                 .input_backward = Nanos(dice.Roll(50, 200)),
                 .weight_backward = Nanos(dice.Roll(50, 200)),
                 .optimizer = Nanos(20),
                 .parameters = Bytes(20),
                 .gradients = Bytes(20),
                 .optimizer_state = Bytes(dice.Roll(0, 120)),
                 .boundary = Bytes(10),
                 .saved = {{"all", Bytes(dice.Roll(50, 150))}}},
                layers, schedule,
                seed % 4 == 3 ? TwoSmallServers(workers + dice.Roll(0, 1), dice)
                              : SmallServer(workers + dice.Roll(0, 1), dice));
  problem.granule = Bytes(1);
  const auto kept = PlanWith("keep", problem);
  EXPECT_TRUE(kept.ok()) << kept.status();
  Bytes most;
  for (const MemoryByKind& peak : kept->simulated.peak) most = std::max(most, Total(peak));
  SetCapacity(problem, Bytes(most.value * dice.Roll(55, 95) / 100));
  return problem;
}

class Auto : public testing::TestWithParam<uint32_t> {};

TEST_P(Auto, IsNeverWorseThanAStrategyThatFits) {
  const PlanningProblem problem = SmallProblem(GetParam());
  const auto best = PlanWith("auto", problem);
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const auto planned = strategy.plan(problem);
    if (!planned.ok()) continue;
    ASSERT_TRUE(best.ok()) << strategy.name << " fits, but auto: " << best.status();
    EXPECT_LE(best->simulated.step_time, planned->simulated.step_time) << strategy.name;
  }
}

TEST_P(Auto, IsNeverWorseThanAStrategyThatFitsWithTheLeastEffort) {
  PlanningProblem problem = SmallProblem(GetParam());
  EXPECT_FALSE(IsLarge(problem));
  const auto best = PlanWith("auto", problem);
  problem.effort = kLeastEffort;
  EXPECT_TRUE(IsLarge(problem));
  const auto quick = PlanWith("auto", problem);
  if (quick.ok()) {
    ASSERT_TRUE(best.ok()) << best.status();
    EXPECT_GE(quick->simulated.step_time, best->simulated.step_time);
  }
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const auto planned = strategy.plan(problem);
    if (!planned.ok()) continue;
    ASSERT_TRUE(quick.ok()) << strategy.name << " fits, but auto: " << quick.status();
    EXPECT_LE(quick->simulated.step_time, planned->simulated.step_time) << strategy.name;
  }
}

TEST_P(Auto, GivesAPlanThatIsValidAndWithinAllCapacities) {
  const PlanningProblem problem = SmallProblem(GetParam());
  const auto planned = PlanWith("auto", problem);
  if (!planned.ok()) {
    EXPECT_EQ(planned.status().code(), absl::StatusCode::kResourceExhausted) << planned.status();
    return;
  }
  EXPECT_TRUE(
      ValidateSchedule(planned->schedule, SchedulePurpose::kTraining, planned->memory).ok());
  const auto again =
      Simulate(SimulationOf(problem, planned->mapping, planned->memory, planned->schedule));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, planned->simulated);
  for (size_t worker = 0; worker < again->peak.size(); ++worker) {
    EXPECT_LE(Total(again->peak[worker]), problem.capacity[worker]);
  }
}

TEST_P(Auto, FindsWhetherAnythingFits) {
  PlanningProblem problem = SmallProblem(GetParam());
  const Bytes capacity = problem.capacity[0];
  for (const int percent : {95, 75}) {
    if (kSanitized && percent == 95) continue;  // both take a minute under a sanitizer
    SetCapacity(problem, Bytes(capacity.value * percent / 100));
    problem.goal = PlanningGoal::kShortestStep;
    const auto best = PlanWith("auto", problem);
    problem.goal = PlanningGoal::kAnyThatFits;
    const auto any = PlanWith("auto", problem);
    EXPECT_EQ(any.status().code(), best.status().code()) << percent << " %: " << any.status();
    if (!any.ok() || !best.ok()) continue;
    EXPECT_GE(any->simulated.step_time, best->simulated.step_time);
    EXPECT_TRUE(Simulate(SimulationOf(problem, any->mapping, any->memory, any->schedule)).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(SmallProblems, Auto, testing::Range(0u, kSanitized ? 2u : 24u));

TEST(Auto, IsDeterministic) {
  const PlanningProblem problem = SmallProblem(3);
  const auto once = PlanWith("auto", problem);
  const auto twice = PlanWith("auto", problem);
  ASSERT_EQ(once.ok(), twice.ok());
  if (!once.ok()) return;
  EXPECT_EQ(once->memory, twice->memory);
  EXPECT_EQ(once->schedule, twice->schedule);
  EXPECT_EQ(once->mapping, twice->mapping);
}

// Where all devices are alike, it does not matter which worker is on which.
TEST(Auto, TakesAsLongOnRenumberedDevices) {
  for (uint32_t seed = 0; seed < (kSanitized ? 1u : 6u); ++seed) {
    PlanningProblem problem = SmallProblem(seed);
    const int workers = WorkerCount(problem.schedule);
    problem.topology = WithHost(UniformTopology(workers, GigabytesPerSecond(4), Nanos(5)), workers,
                                {.to_host = GigabytesPerSecond(2)});
    for (TopologyLink& link : problem.topology.links) link.wires = 1;
    DeviceMapping mapping = IdentityMapping(workers);
    problem.mapping = mapping;
    const auto in_order = PlanWith("auto", problem);
    std::reverse(mapping.device_of_worker.begin(), mapping.device_of_worker.end());
    problem.mapping = mapping;
    const auto reversed = PlanWith("auto", problem);
    ASSERT_EQ(in_order.ok(), reversed.ok()) << seed;
    if (!in_order.ok()) continue;
    EXPECT_EQ(in_order->simulated.step_time, reversed->simulated.step_time) << seed;
  }
}

// 10 billion parameters: recomputation alone is slower than all ways together, and swapping to
// lenders alone has too little room.
TEST(Auto, BeatsRecomputationOnADgx1) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const PlanningProblem problem = GptOnDgx1(50);
  const auto recomputed = PlanWith("recompute", problem);
  ASSERT_TRUE(recomputed.ok()) << recomputed.status();
  EXPECT_FALSE(PlanWith("d2d_swap", problem).ok());
  const auto planned = PlanWith("auto", problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_LT(planned->simulated.step_time.value * 100, recomputed->simulated.step_time.value * 97);
}

// The proof is of the plan that is given out, not of a draft that searches began with.
TEST(Auto, SaysHowGoodTheMapOfItsPlanIs) {
  const auto planned = PlanWith("auto", TwoFullWorkers(Bytes(900)));
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_TRUE(planned->map.has_value());
  EXPECT_EQ(planned->map->time, planned->simulated.step_time);
  EXPECT_LE(planned->map->least_time, planned->map->time);
  EXPECT_EQ(planned->map->least_missing, Bytes(0));
}

// Who waits hears steps that only get shorter, and gets the plan that all get.
TEST(Auto, TellsWhatItHasComeTo) {
  for (uint32_t seed = 1; seed <= (kSanitized ? 1u : 4u); ++seed) {
    PlanningProblem problem = SmallProblem(seed);
    const auto unheard = PlanWith("auto", problem);
    std::vector<Nanos> heard;
    problem.news = [&](absl::string_view doing, Nanos step) {
      EXPECT_FALSE(doing.empty());
      if (step > Nanos(0)) heard.push_back(step);
    };
    const auto planned = PlanWith("auto", problem);
    ASSERT_EQ(planned.ok(), unheard.ok());
    EXPECT_TRUE(std::is_sorted(heard.rbegin(), heard.rend())) << "seed " << seed;
    if (!planned.ok()) continue;
    EXPECT_EQ(planned->memory, unheard->memory);
    EXPECT_EQ(planned->mapping, unheard->mapping);
    ASSERT_FALSE(heard.empty());
    EXPECT_LE(planned->simulated.step_time, heard.back());
  }
}

// So many layers and microbatches that it is searched for a few dozen simulations, and so little
// memory that weights have to leave.
TEST(Auto, SearchesForLongerWhereALargeProblemsStepIsSlowAndSomebodyWaitsForIt) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes with sanitizers";
  PlanningProblem problem =
      ProblemOf({.forward = Nanos(1000),
                 .input_backward = Nanos(1000),
                 .weight_backward = Nanos(1000),
                 .optimizer = Nanos(100),
                 .parameters = Bytes(400),
                 .gradients = Bytes(800),
                 .optimizer_state = Bytes(1200),
                 .boundary = Bytes(10),
                 .saved = {{"all", Bytes(300)}}},
                34, LoweredSchedule("1f1b", 2, 64),
                WithHost(UniformTopology(2, GigabytesPerSecond(2), Nanos(5)), 2,
                         {.to_host = BytesPerSecond(300'000'000),
                          .from_host = BytesPerSecond(300'000'000),
                          .latency = Nanos(10)}));
  problem.granule = Bytes(1);
  problem.host_step = Nanos(2000);
  const auto kept = PlanWith("keep", problem);
  ASSERT_TRUE(kept.ok()) << kept.status();
  SetCapacity(problem, Bytes(17'500));
  const auto quick = PlanWith("auto", problem);
  ASSERT_TRUE(quick.ok()) << quick.status();
  ASSERT_GT(quick->simulated.step_time.value, kept->simulated.step_time.value * 6 / 5);
  problem.most_effort = kEffortForUsers;
  const auto longer = PlanWith("auto", problem);
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_LT(longer->simulated.step_time, quick->simulated.step_time);
  problem.goal = PlanningGoal::kShortStep;
  const auto compared = PlanWith("auto", problem);
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_EQ(compared->simulated.step_time, quick->simulated.step_time);
}

// A backward's weights and gradients of three layers have no room, those of one have.
TEST(Auto, StreamsWeightsThroughAsManyBuffersAsThereIsRoomFor) {
  PlanningProblem problem = GptThatStreams(16, 2'750'000'000);
  problem.goal = PlanningGoal::kAnyThatFits;
  const auto planned = PlanWith("auto", problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  int fewest = kMostStreamBuffers;
  for (const StagePlan& stage : planned->memory.stages) {
    fewest = std::min(fewest, stage.stream_buffers);
  }
  EXPECT_EQ(fewest, 1);
}

}  // namespace
}  // namespace siphon
