#include "launch/commands/least_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/plan_study.h"
#include "planner/layer_cost.h"
#include "planner/stage_cost.h"
#include "tests/launch/commands/plan_fixture.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

class LeastMemoryOfPlans : public PlanCommand {
 protected:
  absl::StatusOr<StudiedPlan> Plan(const std::vector<std::string>& settings,
                                   const std::string& strategy,
                                   HopelessJobs hopeless = HopelessJobs::kAreSearched) const {
    return StudyPlan({.job = {Write(kSmallJob), settings},
                      .strategy = strategy,
                      .goal = PlanningGoal::kAnyThatFits,
                      .bounds = false,
                      .hopeless = hopeless});
  }

  // With about as little room as the strategy can do with, and more: halves that, as often as it
  // finds a plan.
  void ExpectNoPlanHoldsLess(std::vector<std::string> settings, const std::string& strategy) const {
    const std::string what = absl::StrCat(settings.front(), " ", strategy);
    const auto kept = Plan(settings, "keep");
    ASSERT_TRUE(kept.ok()) << what << kept.status();
    Bytes size;
    for (size_t worker = 0; worker < kept->kept.peak.size(); ++worker) {
      size = std::max(size, PeakOf(kept->kept, worker));
    }
    int plans = 0;
    for (settings.emplace_back(); size > Bytes(0); size = Bytes(size.value * 3 / 4)) {
      settings.back() = absl::StrCat("memory.capacity=", size.value, "B");
      const auto plan = Plan(settings, strategy);
      ASSERT_TRUE(plan.ok()) << what << plan.status();
      const std::vector<Bytes> least = LeastMemory(plan->problem);
      if (!plan->step.has_value()) break;
      ++plans;
      EXPECT_EQ(WhyNoPlanFits(plan->problem), std::nullopt) << what;
      for (size_t worker = 0; worker < plan->step->peak.size(); ++worker) {
        EXPECT_GT(least[worker % least.size()], Bytes(0));
        EXPECT_LE(least[worker % least.size()], PeakOf(*plan->step, worker)) << what;
      }
    }
    EXPECT_GE(plans, 1) << what;
  }
};

TEST_F(LeastMemoryOfPlans, IsNoMoreThanAnyOfThemHolds) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  for (const char* schedule : {"1f1b", "zb_h1", "interleaved_1f1b", "dualpipev"}) {
    const bool chunks =
        !std::string(schedule).starts_with("1f1b") && !std::string(schedule).starts_with("zb_h1");
    for (const char* strategy : {"recompute", "host_swap", "vdnn", "weight_offload", "l2l",
                                 "mpress", "optimizer_offload", "auto"}) {
      ExpectNoPlanHoldsLess({absl::StrCat("pipeline.schedule=", schedule),
                             chunks ? "pipeline.stages=4" : "pipeline.stages=2",
                             chunks ? "pipeline.chunks=2" : "pipeline.chunks=1"},
                            strategy);
    }
  }
}

TEST_F(LeastMemoryOfPlans, IsNoMoreThanAnyHoldsOnDevices) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  for (const char* strategy : {"recompute", "host_swap", "l2l", "auto"}) {
    ExpectNoPlanHoldsLess({"pipeline.backend=cuda", "topology.name=dgx1_v100"}, strategy);
  }
}

// What is there all the time, and beside it the fullest moment of one layer.
TEST_F(LeastMemoryOfPlans, IsWhatOneLayerNeeds) {
  const auto plan = Plan({"pipeline.schedule=1f1b"}, "keep");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlanningProblem& problem = plan->problem;
  const auto costs = StageCosts(problem.profile, problem.partition);
  const auto layers = LayerCosts(problem.profile, problem.partition);
  const std::vector<Bytes> least = LeastMemory(problem);
  ASSERT_EQ(least.size(), 2u);
  for (size_t stage = 0; stage < 2; ++stage) {
    Bytes most;  // of each layer alone, in its backward
    for (size_t layer = 0; layer < layers[stage].size(); ++layer) {
      const int first = problem.partition.stages[stage].begin;
      most = std::max(
          most, layers[stage][layer].stash + problem.profile.layers[first + layer].parameters);
    }
    EXPECT_EQ(least[stage], Total(problem.held[stage]) + most + costs[stage].output +
                                costs[stage].backward_workspace);
  }
}

TEST_F(LeastMemoryOfPlans, RefusesWithoutASearchWhatNoPlanFits) {
  const std::vector<std::string> tiny = {"memory.capacity=20KiB"};
  const auto refused = Plan(tiny, "auto", HopelessJobs::kAreRefused);
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_FALSE(refused->step.has_value());
  EXPECT_THAT(
      refused->misfit,
      testing::ContainsRegex("^worker [01] needs .* under any plan, its capacity is 20.0 KiB$"));
  const auto searched = Plan(tiny, "auto");
  ASSERT_TRUE(searched.ok()) << searched.status();
  EXPECT_FALSE(searched->step.has_value());
  EXPECT_THAT(searched->misfit,
              testing::HasSubstr(" at its fullest under the nearest plan of auto"));
}

}  // namespace
}  // namespace siphon
