// A slice of the bench: small instances, planned with every strategy and bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/second_choices/second_choices.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/strategies.h"
#include "planner/validate_schedule.h"
#include "tests/bench/plan_gaps/every_draft.h"
#include "tests/bench/plan_gaps/gap_report.h"
#include "tests/bench/plan_gaps/measure_tiny.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

class PlanGaps : public testing::TestWithParam<uint32_t> {};

TEST_P(PlanGaps, AutoIsAtMostTheOthersAndAtLeastTheBound) {
  const auto instance = SmallGapInstance(GetParam());
  ASSERT_TRUE(instance.ok()) << instance.status();
  const auto outcome = MeasureGap(*instance);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->others.size() + 1, MemoryStrategies().size());
  EXPECT_TRUE(outcome->Winners().empty()) << outcome->Winners().front() << " is faster";
  // Capacities are such that something fits, and not everything kept.
  ASSERT_TRUE(outcome->Gap().has_value()) << outcome->name;
  EXPECT_EQ(outcome->others.front().strategy, "keep");
  EXPECT_FALSE(outcome->others.front().step_time.has_value());
  EXPECT_GE(*outcome->Gap(), 0) << outcome->name;
  EXPECT_GE(outcome->bound.step_time, outcome->longest_path);
}

INSTANTIATE_TEST_SUITE_P(SmallInstances, PlanGaps, testing::Range(1u, 13u));

// Of the whole grid those that are planned in a moment: on the uneven mesh, maps differ most.
TEST(PlanGapsGrid, AutoIsAtMostTheOthersOnTheUnevenMesh) {
  const auto grid = GapGrid(GapGridSize(), 1);
  ASSERT_TRUE(grid.ok()) << grid.status();
  int measured = 0;
  for (const GapInstance& instance : *grid) {
    const std::vector<std::string> words = absl::StrSplit(instance.name, ' ');
    if (words[0] != "mlp" || words[1] != "uneven" || words[3] == "95%") continue;
    const auto outcome = MeasureGap(instance);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    for (const std::string& winner : outcome->Winners()) {
      ADD_FAILURE() << instance.name << ": " << winner << " is faster";
    }
    EXPECT_GE(outcome->Gap().value_or(-1), 0) << instance.name;
    ++measured;
  }
  EXPECT_EQ(measured, 16);
}

// Another strategy is a little faster there than what the searches come to, on a map that it does
// not prove by itself.
TEST(PlanGapsGrid, ProvesTheMapOfAnotherStrategysPlan) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes a minute under a sanitizer";
  const auto grid = GapGrid(GapGridSize(), 1);
  ASSERT_TRUE(grid.ok()) << grid.status();
  const auto instance = std::find_if(grid->begin(), grid->end(), [](const GapInstance& one) {
    return one.name == "bert dgx_a100 1f1b 25%";
  });
  ASSERT_NE(instance, grid->end());
  const auto planned = PlanAuto(instance->problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_TRUE(planned->map.has_value());
  EXPECT_TRUE(planned->map->proven);
  EXPECT_EQ(planned->map->time, planned->simulated.step_time);
}

class SecondChoices : public testing::TestWithParam<uint32_t> {
 protected:
  // The plan with the second choices of what is to `from`, and of that has a stripe at the device.
  static MemoryPlan Taken(MemoryPlan plan, Placement from, std::optional<DeviceId> lender) {
    for (StagePlan& stage : plan.stages) {
      for (auto& [group, choice] : stage.groups) {
        const bool concerned =
            choice.placement == from &&
            (!lender.has_value() ||
             std::any_of(choice.stripes.begin(), choice.stripes.end(),
                         [&](const Stripe& stripe) { return stripe.lender == *lender; }));
        // What goes to lenders only then is cut into stripes only then (spare_lending.h).
        const bool stays = choice.second_choice == Placement::kKeep ||
                           choice.second_choice == Placement::kPeerSwap;
        if (!concerned || stays) continue;
        choice = {.placement = choice.second_choice};
      }
    }
    return plan;
  }

  static void ExpectFits(DraftSimulator& simulator, const SimulatedDraft& simulated,
                         const MemoryPlan& taken, const std::string& name) {
    const auto tried = simulator.RunPlan(simulated.draft, taken);
    ASSERT_TRUE(tried.ok()) << name << ": " << tried.status();
    EXPECT_TRUE(Fits(*tried)) << name;
    const absl::Status valid =
        ValidateSchedule(tried->schedule, SchedulePurpose::kTraining, tried->memory);
    EXPECT_TRUE(valid.ok()) << name << ": " << valid;
  }
};

TEST_P(SecondChoices, OfOnePlaceAndOfOneLenderFitAndAreValid) {
  const auto instance = SmallGapInstance(GetParam());
  ASSERT_TRUE(instance.ok()) << instance.status();
  const PlanningProblem& problem = instance->problem;
  DraftSimulator simulator(problem);
  for (const auto& make : {DraftPeerSwap, DraftHostSwap}) {
    absl::StatusOr<SimulatedDraft> simulated = make(simulator);
    if (!simulated.ok() || !Fits(*simulated)) continue;
    ASSERT_TRUE(AddSecondChoices(simulator, *simulated).ok());
    for (const Placement from : {Placement::kPeerSwap, Placement::kHostSwap}) {
      ExpectFits(simulator, *simulated, Taken(simulated->memory, from, std::nullopt),
                 instance->name);
    }
    for (int device = 0; device < DeviceCount(problem.topology); ++device) {
      ExpectFits(simulator, *simulated,
                 Taken(simulated->memory, Placement::kPeerSwap, DeviceId(device)), instance->name);
    }
    for (const StagePlan& stage : simulated->memory.stages) {
      for (const auto& [group, choice] : stage.groups) {
        if (choice.placement != Placement::kPeerSwap) continue;
        EXPECT_NE(choice.second_choice, Placement::kKeep) << instance->name << ": a lender's";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SmallInstances, SecondChoices, testing::Range(1u, 25u));

TEST(EveryDraft, IsAtMostWhatStrategiesOfOnePlaceFind) {
  const auto instance = TinyGapInstance(19);
  ASSERT_TRUE(instance.ok()) << instance.status();
  const auto all = BestOfEveryDraft(instance->problem, 1'000);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_TRUE(all->best.has_value());
  EXPECT_TRUE(Fits(*all->best));
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const bool drafts =
        strategy.name == "recompute" || strategy.name == "host_swap" || strategy.name == "d2d_swap";
    if (!drafts) continue;
    const auto planned = strategy.plan(instance->problem);
    if (!planned.ok()) continue;
    EXPECT_LE(all->best->score.step, planned->simulated.step_time) << strategy.name;
  }
}

TEST(EveryDraft, SaysWhenThereAreTooMany) {
  const auto instance = TinyGapInstance(3);
  ASSERT_TRUE(instance.ok()) << instance.status();
  EXPECT_EQ(BestOfEveryDraft(instance->problem, 1'000).status().code(),
            absl::StatusCode::kResourceExhausted);
}

class TinyGaps : public testing::TestWithParam<uint32_t> {};

TEST_P(TinyGaps, AutoFindsTheBestOfAllDraftsAndNoneBeatsTheBound) {
  const auto instance = TinyGapInstance(GetParam());
  ASSERT_TRUE(instance.ok()) << instance.status();
  const auto outcome = MeasureTiny(*instance, 1'000);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_GT(outcome->drafts, 20);
  EXPECT_LE(outcome->planned, outcome->best) << instance->name;
  EXPECT_LE(outcome->bound, outcome->best) << instance->name;
}

// Among them 16 and 52, in which single changes stop 4 and 10 % above the best draft.
INSTANTIATE_TEST_SUITE_P(TinyInstances, TinyGaps, testing::Values(5u, 8u, 16u, 21u, 22u, 52u, 82u));

TEST(GapGrid, DrawsTheSameDifferentInstancesEachTime) {
  EXPECT_GE(GapGridSize(), 200);
  const auto drawn = GapGrid(4, 3);
  const auto again = GapGrid(4, 3);
  ASSERT_TRUE(drawn.ok() && again.ok());
  ASSERT_EQ(drawn->size(), 4u);
  for (size_t place = 0; place < drawn->size(); ++place) {
    const GapInstance& one = (*drawn)[place];
    EXPECT_EQ(one.name, (*again)[place].name);
    EXPECT_EQ(one.problem.capacity, (*again)[place].problem.capacity);
    EXPECT_TRUE(CheckPlanningProblem(one.problem).ok()) << one.name;
    const auto is_it = [&](const GapInstance& other) { return other.name == one.name; };
    EXPECT_EQ(std::count_if(drawn->begin(), drawn->end(), is_it), 1);
  }
}

TEST(GapReport, CountsLossesAndGapsOfInstancesThatFit) {
  const GapOutcome lost{.name = "lost",
                        .others = {{.strategy = "recompute", .step_time = Nanos(100)}},
                        .planned = {.strategy = "auto", .step_time = Nanos(110)},
                        .longest_path = Nanos(100),
                        .bound = {.step_time = Nanos(100), .reason = "the path"}};
  GapOutcome unfit = lost;
  unfit.name = "unfit";
  unfit.others.front().step_time.reset();
  unfit.planned.step_time.reset();
  unfit.bound.cannot_fit = "memory of worker 0";
  const std::string report = GapReport({lost, unfit});
  EXPECT_NE(report.find("2 instances, 1 fit; auto lost 1 times"), std::string::npos) << report;
  EXPECT_NE(report.find("lost: lost to recompute"), std::string::npos) << report;
  EXPECT_NE(report.find("unfit (proven: memory of worker 0)"), std::string::npos) << report;
  EXPECT_NE(report.find("8.0 to  12.0 %     1 *"), std::string::npos) << report;
}

TEST(Quantile, IsTheNearestRank) {
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 0), 1);
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 0.5), 2);
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 0.75), 3);
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 1), 4);
}

}  // namespace
}  // namespace siphon
