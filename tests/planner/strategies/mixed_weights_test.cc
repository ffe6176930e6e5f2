// Plans that send both activations and weights away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "planner/search/tidy_draft.h"
#include "planner/search/trade_changes.h"
#include "planner/search/weight_starts.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/validate_schedule.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

constexpr Placement kKept = Placement::kKeep;
constexpr Placement kAgain = Placement::kRecompute;
constexpr Placement kToHost = Placement::kHostSwap;

// Weights fill most of the memory: 200 bytes of them a layer, 60 of activations.
LayerProfile HeavyLayer() {
  return {.forward = Nanos(100),
          .input_backward = Nanos(100),
          .weight_backward = Nanos(100),
          .optimizer = Nanos(10),
          .parameters = Bytes(100),
          .gradients = Bytes(100),
          .boundary = Bytes(5),
          .saved = {{"all", Bytes(60)}}};
}

std::vector<Bytes> PeaksOfKeeping(PlanningProblem problem) {
  problem.capacity.clear();
  const auto kept = FindMemoryStrategy("keep")->plan(problem);
  EXPECT_TRUE(kept.ok()) << kept.status();
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : kept->simulated.peak) peaks.push_back(Total(peak));
  return peaks;
}

// Eight layers, one device, two microbatches; a parameter or gradient takes as long to copy as a
// layer's forward. `percent` of what keeping everything takes.
PlanningProblem OneDevice(int percent) {
  PlanningProblem problem = ProblemOf(HeavyLayer(), 8, LoweredSchedule("gpipe", 1, 2),
                                      WithHost(UniformTopology(1, kByteANano, Nanos(0)), 1,
                                               {.to_host = kByteANano, .from_host = kByteANano}));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(PeaksOfKeeping(problem)[0].value * percent / 100));
  return problem;
}

// Twelve layers on two devices with a link between them; the first one may have `percent` of what
// keeping everything takes, the second has `spare` bytes more than that.
PlanningProblem FullAndLender(BytesPerSecond host, int spare, int percent) {
  Topology topology = UniformTopology(2, kByteANano * 2, Nanos(0));
  for (TopologyLink& link : topology.links) link.wires = 1;
  PlanningProblem problem = ProblemOf(HeavyLayer(), 12, LoweredSchedule("1f1b", 2, 4),
                                      WithHost(topology, 1, {.to_host = host, .from_host = host}));
  problem.granule = Bytes(1);
  const std::vector<Bytes> peaks = PeaksOfKeeping(problem);
  problem.capacity = {Bytes(peaks[0].value * percent / 100), peaks[1] + Bytes(spare)};
  return problem;
}

std::optional<Nanos> BestOfTheOthers(const PlanningProblem& problem) {
  std::optional<Nanos> best;
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    if (strategy.name == "auto") continue;
    const auto planned = strategy.plan(problem);
    if (!planned.ok()) continue;
    const Nanos step = planned->simulated.step_time;
    best = best ? std::min(*best, step) : step;
  }
  return best;
}

PlannedStep Auto(const PlanningProblem& problem) {
  auto planned = FindMemoryStrategy("auto")->plan(problem);
  EXPECT_TRUE(planned.ok()) << planned.status();
  if (!planned.ok()) return {};
  EXPECT_EQ(ValidateSchedule(planned->schedule, SchedulePurpose::kTraining, planned->memory),
            absl::OkStatus());
  return *std::move(planned);
}

bool Sends(const PlannedStep& planned, GroupKind kind) {
  const std::vector<PlannedGroup>& groups = planned.memory.stages[0].groups;
  return std::any_of(groups.begin(), groups.end(), [kind](const PlannedGroup& planned_group) {
    return planned_group.group.kind == kind && IsSwap(planned_group.choice.placement);
  });
}

bool SavesActivations(const PlannedStep& planned) {
  const std::vector<PlannedGroup>& groups = planned.memory.stages[0].groups;
  return std::any_of(groups.begin(), groups.end(), [](const PlannedGroup& one) {
    return one.group.kind == GroupKind::kActivations && one.choice.placement != kKept;
  });
}

// The link is busy with weights while layers compute, and what is too much for it is computed
// again.
TEST(MixedWeights, AreFasterThanWeightsOrActivationsAloneOnOneDevice) {
  const PlanningProblem problem = OneDevice(55);
  const auto best = BestOfTheOthers(problem);
  ASSERT_TRUE(best.has_value());
  const PlannedStep planned = Auto(problem);
  EXPECT_LT(planned.simulated.step_time.value * 100, best->value * 98);
  EXPECT_TRUE(Sends(planned, GroupKind::kParameters) || Sends(planned, GroupKind::kGradients));
  EXPECT_TRUE(SavesActivations(planned));
}

TEST(MixedWeights, FitWhereNeitherWeightsNorActivationsDoAlone) {
  const PlanningProblem problem = OneDevice(30);
  EXPECT_FALSE(BestOfTheOthers(problem).has_value());
  const PlannedStep planned = Auto(problem);
  EXPECT_TRUE(Sends(planned, GroupKind::kParameters));
  EXPECT_LE(Total(planned.simulated.peak[0]), problem.capacity[0]);
}

// A link to a lender that has little room, and a slower one to the host.
TEST(MixedWeights, AreFasterThanWeightsOrActivationsAloneWithALender) {
  const PlanningProblem problem = FullAndLender(BytesPerSecond(500'000'000), 300, 65);
  const auto best = BestOfTheOthers(problem);
  ASSERT_TRUE(best.has_value());
  const PlannedStep planned = Auto(problem);
  EXPECT_LT(planned.simulated.step_time.value * 100, best->value * 97);
  EXPECT_TRUE(Sends(planned, GroupKind::kParameters) || Sends(planned, GroupKind::kGradients));
  EXPECT_TRUE(SavesActivations(planned));
  for (size_t worker = 0; worker < problem.capacity.size(); ++worker) {
    EXPECT_LE(Total(planned.simulated.peak[worker]), problem.capacity[worker]);
  }
}

// Everything that fits only with all activations recomputed and all weights away, layer by layer.
TEST(BestWithWeightsAway, AddsWeightsToWhatDoesNotFit) {
  const PlanningProblem problem = OneDevice(40);
  DraftSimulator simulator(problem);
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations.assign(8, kAgain);
  auto start = simulator.Run(draft);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_FALSE(Fits(*start));
  const auto best = BestWithWeightsAway(simulator, *std::move(start));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_TRUE(Fits(*best));
  EXPECT_EQ(best->draft.stages[0].activations, draft.stages[0].activations);
  EXPECT_THAT(best->draft.stages[0].parameters, testing::Contains(kToHost));
}

// Two layers computed again are enough. What goes to the host beside them, hidden or not, stays.
TEST(TidyDraft, KeepsWhatLeavesForNothing) {
  PlanningProblem problem = OneDevice(100);
  SetCapacity(problem, Bytes(2560 - 150));
  DraftSimulator simulator(problem);
  DraftPlan needed = KeepingDraft(problem);
  needed.stages[0].activations[6] = needed.stages[0].activations[7] = kAgain;
  const auto alone = simulator.Run(needed);
  ASSERT_TRUE(alone.ok() && Fits(*alone));
  DraftPlan more = needed;
  more.stages[0].activations[0] = kToHost;
  more.stages[0].parameters[3] = kToHost;
  auto start = simulator.Run(more);
  ASSERT_TRUE(start.ok());
  const Nanos before = start->score.step;
  const auto tidy = TidyDraft(simulator, *std::move(start));
  ASSERT_TRUE(tidy.ok()) << tidy.status();
  EXPECT_TRUE(Fits(*tidy));
  EXPECT_LE(tidy->score.step, before);
  EXPECT_EQ(tidy->draft, needed);
}

// A layer's activations are 20 bytes, for there are two microbatches. All five layers' parameters
// leave 150 bytes, of which two layers that come in by turns need 60: room for four layers. Fewer
// of them, or gradients and state of 4 bytes, make no room.
TEST(TradesOf, KeepsAsManyActivationsAsWeightsMakeRoomFor) {
  const PlanningProblem problem =
      ProblemOf({.forward = Nanos(10),
                 .parameters = Bytes(30),
                 .gradients = Bytes(4),
                 .optimizer_state = Bytes(4),
                 .saved = {{"all", Bytes(10)}}},
                5, LoweredSchedule("gpipe", 1, 2),
                WithHost(UniformTopology(1, kByteANano, Nanos(0)), 1,
                         {.to_host = kByteANano, .from_host = kByteANano}));
  const DraftSimulator simulator(problem);
  ASSERT_THAT(simulator.away(), testing::ElementsAre(2));
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations.assign(5, kAgain);
  const std::vector<DraftPlan> trades = TradesOf(simulator, draft, {StageId(0)});
  ASSERT_EQ(trades.size(), 1u);
  EXPECT_THAT(trades[0].stages[0].activations,
              testing::ElementsAre(kKept, kKept, kKept, kKept, kAgain));
  EXPECT_THAT(trades[0].stages[0].parameters, testing::Each(kToHost));
  // Where some are away already, each further layer's parameters make room for one layer.
  draft.stages[0].parameters = {kToHost, kToHost, kKept, kKept, kKept};
  const std::vector<DraftPlan> more = TradesOf(simulator, draft, {StageId(0)});
  ASSERT_EQ(more.size(), 2u);
  EXPECT_THAT(more[0].stages[0].activations,
              testing::ElementsAre(kKept, kAgain, kAgain, kAgain, kAgain));
  EXPECT_EQ(
      std::count(more[0].stages[0].parameters.begin(), more[0].stages[0].parameters.end(), kToHost),
      3);
  EXPECT_THAT(more[1].stages[0].activations,
              testing::ElementsAre(kKept, kKept, kKept, kKept, kAgain));
}

}  // namespace
}  // namespace siphon
