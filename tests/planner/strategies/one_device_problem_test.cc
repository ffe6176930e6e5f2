#include "planner/strategies/one_device_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/strategies.h"
#include "planner/weight_offload/weight_offload_bound.h"
#include "tests/planner/dice.h"

namespace siphon {
namespace {

WeightOffloadProblem Equal(int layers, int64_t time, int64_t weight, int64_t capacity) {
  WeightOffloadProblem problem;
  for (int layer = 0; layer < layers; ++layer) {
    problem.layers.push_back({.name = "block",
                              .forward = Nanos(time),
                              .backward = Nanos(2 * time),
                              .weight = Bytes(weight)});
  }
  problem.out = problem.in = BytesPerSecond(1'000'000'000);
  problem.capacity = Bytes(capacity);
  return problem;
}

absl::StatusOr<PlannedStep> Auto(const PlanningProblem& problem) {
  return FindMemoryStrategy("auto").value().plan(problem);
}

// Where all fits, the step is the computation and the host's update.
TEST(OneDeviceProblem, TakesAsLongAsItsOperations) {
  const auto problem = OneDeviceProblem(Equal(3, 20, 10, 60));
  ASSERT_TRUE(problem.ok()) << problem.status();
  ASSERT_TRUE(CheckPlanningProblem(*problem).ok());
  const auto planned = Auto(*problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->simulated.step_time, Nanos(3 * (20 + 40)));
}

// Three weights, with room for two and the gradients of a layer that leaves, of one that runs and
// of one that comes in to be added to. F waits 10 for its first layer, B 20 for the weight and the
// gradient of its first one, and the host's update 10 for the last gradient.
TEST(OneDeviceProblem, WaitsForTheFirstAndTheLastTransfers) {
  const auto problem = OneDeviceProblem(Equal(3, 20, 10, 50));
  ASSERT_TRUE(problem.ok()) << problem.status();
  const auto planned = Auto(*problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->simulated.step_time, Nanos(180 + 10 + 20 + 10));
}

// Plans of the pipeline's planner are none that the paper's bound forbids.
TEST(OneDeviceProblem, NoPlanIsBelowTheBoundOfWeightOffloading) {
  constexpr absl::string_view kAuto = "auto";
  constexpr int kSeedsOfAuto = 3;  // its searches take their time
  int fit = 0;
  int full = 0;
  for (int seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    WeightOffloadProblem problem = Equal(dice.Roll(2, 6), 1, 0, 0);
    Bytes weights;
    Bytes activations;
    Bytes most;
    for (WeightOffloadLayer& layer : problem.layers) {
      layer.forward = Nanos(dice.Roll(1, 40));
      layer.backward = Nanos(dice.Roll(1, 80));
      layer.weight = Bytes(dice.Roll(1, 40));
      layer.activation = Bytes(dice.Roll(0, 10));
      weights += layer.weight;
      activations += layer.activation;
      most = std::max(most, layer.weight);
    }
    problem.capacity = activations + most * 3 + Bytes(dice.Roll(0, 40));
    ASSERT_TRUE(CheckWeightOffloadProblem(problem).ok());
    const auto one = OneDeviceProblem(problem);
    ASSERT_TRUE(one.ok()) << one.status();
    for (const char* strategy : {"l2l", "weight_offload", "auto"}) {
      if (strategy == kAuto && seed >= kSeedsOfAuto) continue;
      const auto planned = FindMemoryStrategy(strategy).value().plan(*one);
      if (!planned.ok()) continue;
      ++fit;
      full += weights * 2 + activations > problem.capacity ? 1 : 0;
      EXPECT_GE(planned->simulated.step_time, WeightOffloadBound(problem))
          << strategy << ", seed " << seed;
    }
  }
  EXPECT_GT(fit, 60);
  EXPECT_GT(full, 40);
}

// As in two rows of the paper's Table 1 (GPT-2 of depth 74 and Bert of 144 at batch 64) not even
// one layer's weights at a time leave room for all activations, each as large as its layer's input:
// blocks of layers are computed again, and have their weights together, or activations go layer by
// layer as well.
TEST(OneDeviceProblem, AutoHasAPlanWhereAllActivationsAreTooMuch) {
  WeightOffloadProblem problem = Equal(20, 100, 40, 0);
  for (WeightOffloadLayer& layer : problem.layers) layer.activation = Bytes(40);
  problem.capacity = Bytes(2'000);
  auto one = OneDeviceProblem(problem);
  ASSERT_TRUE(one.ok()) << one.status();
  DraftSimulator simulator(*one);
  const auto layer_to_layer = DraftLayerToLayer(simulator);
  ASSERT_TRUE(layer_to_layer.ok()) << layer_to_layer.status();
  problem.capacity = layer_to_layer->peaks[0] - Bytes(10);
  one = OneDeviceProblem(problem);
  ASSERT_TRUE(one.ok()) << one.status();
  for (const char* strategy : {"l2l", "weight_offload", "recompute", "host_swap"}) {
    EXPECT_FALSE(FindMemoryStrategy(strategy).value().plan(*one).ok()) << strategy;
  }
  const auto planned = Auto(*one);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_LE(Total(planned->simulated.peak[0]), problem.capacity);
  EXPECT_GE(planned->simulated.step_time, WeightOffloadBound(problem));
  const std::vector<PlannedGroup>& groups = planned->memory.stages[0].groups;
  EXPECT_TRUE(std::any_of(groups.begin(), groups.end(), [](const PlannedGroup& planned_group) {
    return planned_group.group.kind == GroupKind::kActivations &&
           planned_group.choice.placement != Placement::kKeep;
  }));
}

}  // namespace
}  // namespace siphon
