#include "planner/baselines/virtual_memory_step.h"

#include <gtest/gtest.h>

#include "planner/baselines/memory_baseline.h"
#include "tests/planner/baselines/baseline_machines.h"

namespace siphon {
namespace {

// One layer on two devices: 850 bytes would be there at once. Forward 100 in, 10 ns, 150 out;
// backward 250, 20, 200; the sum of gradients sends twice half of 100; update 800, 5, 800.
TEST(LmsStep, IsTheSumOfItsParts) {
  BaselineProblem problem = SmallBaseline(1, 2);
  problem.capacity = Bytes(849);
  const BaselineStep step = LmsStep(problem).value();
  EXPECT_EQ(step.step_time, Nanos(100 + 10 + 150 + 250 + 20 + 200 + 100 + 800 + 5 + 800));
  EXPECT_EQ(step.device, Bytes(800));
  EXPECT_EQ(step.host, Bytes(2 * 850));
  EXPECT_EQ(step.from_host, Bytes(2 * 1150));
  EXPECT_EQ(step.to_host, Bytes(2 * 1150));
}

// Pages move at half the rate, and the computation waits for both directions.
TEST(UnifiedMemoryStep, TakesTwiceAsLongForItsPages) {
  BaselineProblem problem = SmallBaseline(1, 2);
  problem.capacity = Bytes(849);
  EXPECT_EQ(UnifiedMemoryStep(problem).value().step_time, Nanos(2 * 2300 + 10 + 20 + 100 + 5));
}

TEST(UnifiedMemoryStep, IsFasterWithPrefetch) {
  BaselineProblem problem = SmallBaseline(8, 2);
  problem.capacity = Bytes(1600);
  problem.microbatches = 3;
  const BaselineStep demand = UnifiedMemoryStep(problem).value();
  const BaselineStep prefetch = PrefetchedUnifiedMemoryStep(problem).value();
  EXPECT_LT(prefetch.step_time, demand.step_time);
  EXPECT_EQ(prefetch.from_host, demand.from_host);
  EXPECT_EQ(prefetch.device, Bytes(1600));  // two updates
  problem.capacity = Bytes(1599);
  EXPECT_TRUE(absl::IsResourceExhausted(PrefetchedUnifiedMemoryStep(problem).status()));
}

TEST(VirtualMemorySteps, MoveNothingWhereEverythingFits) {
  const BaselineProblem problem = SmallBaseline(3, 2);
  for (const auto step_of : {LmsStep, UnifiedMemoryStep, PrefetchedUnifiedMemoryStep}) {
    const BaselineStep step = step_of(problem).value();
    EXPECT_EQ(step.to_host + step.from_host, Bytes(0));
    EXPECT_EQ(step.step_time, Nanos(3 * (30 + 5 + 100)));
  }
}

// Harmony, analytical comparison: (4 m + 2) N |W|.
TEST(LmsStep, MovesTheWeightsAsHarmonyCounts) {
  for (int devices : {1, 2, 4, 8}) {
    for (int layers : {2, 5}) {
      for (int microbatches : {1, 2, 7}) {
        BaselineProblem problem = SmallBaseline(layers, devices);
        problem.microbatches = microbatches;
        problem.capacity = Bytes(100);
        for (LayerProfile& layer : problem.profile.layers) {
          layer.gradients = layer.optimizer_state = Bytes(0);
          layer.saved.clear();
        }
        const BaselineStep step = LmsStep(problem).value();
        EXPECT_EQ(step.to_host + step.from_host,
                  Bytes(100) * layers * devices * (4 * microbatches + 2));
      }
    }
  }
}

TEST(MemoryBaselines, AllFitWhereThereIsRoom) {
  for (const MemoryBaseline& baseline : MemoryBaselines()) {
    BaselineProblem problem = SmallBaseline(3, 4);
    problem.topology.drives = {{.capacity = kAmple, .read = kByteANano, .write = kByteANano}};
    const auto step = baseline.step(problem);
    ASSERT_TRUE(step.ok()) << baseline.name << ": " << step.status();
    EXPECT_GE(step->step_time, step->computing) << baseline.name;
    EXPECT_FALSE(baseline.help.empty());
  }
}

}  // namespace
}  // namespace siphon
