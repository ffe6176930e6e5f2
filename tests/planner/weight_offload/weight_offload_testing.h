#ifndef SIPHON_TESTS_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_TESTING_H_
#define SIPHON_TESTS_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/weight_offload/weight_offload_plan.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// Over a link on which a byte takes a nanosecond.
inline WeightOffloadProblem EqualLayers(int layers, int64_t forward, int64_t backward,
                                        int64_t weight, int64_t activation, int64_t capacity) {
  WeightOffloadProblem problem;
  for (int layer = 1; layer <= layers; ++layer) {
    problem.layers.push_back({absl::StrCat("block ", layer), Nanos(forward), Nanos(backward),
                              Bytes(weight), Bytes(activation)});
  }
  problem.out = problem.in = BytesPerSecond(1'000'000'000);
  problem.capacity = Bytes(capacity);
  return problem;
}

// What the operation that needs most needs by itself.
inline Bytes LeastCapacity(const WeightOffloadProblem& problem) {
  const auto memories = OperationMemories(problem);
  Bytes most;
  for (int operation = 0; operation < OperationCount(problem); ++operation) {
    const Bytes own = problem.layers[LayerOf(problem, operation)].weight;
    most = std::max(most, memories[operation].during + own);
  }
  return most;
}

// Unequal layers, some without a weight, and capacity for anything from one operation to all.
class RandomProblems {
 public:
  explicit RandomProblems(unsigned seed) : engine_(seed) {}

  WeightOffloadProblem Next(int most_layers, int64_t largest) {
    WeightOffloadProblem problem;
    const auto layers = Between(1, most_layers);
    for (int64_t layer = 1; layer <= layers; ++layer) {
      const Bytes weight(Between(0, 7) == 0 ? 0 : Between(1, largest));
      problem.layers.push_back({absl::StrCat(layer), Nanos(Between(1, largest)),
                                Nanos(Between(1, 2 * largest)), weight,
                                Bytes(Between(0, largest / 4))});
    }
    problem.input = Bytes(Between(0, largest / 4));
    problem.out = BytesPerSecond(Between(1, 4) * 500'000'000);
    problem.in = BytesPerSecond(Between(1, 4) * 500'000'000);
    const Bytes least = LeastCapacity(problem);
    problem.capacity = least + Bytes(Between(0, WeightBytes(problem).value));
    return problem;
  }

  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(engine_() % static_cast<uint64_t>(most - least + 1));
  }

 private:
  std::mt19937 engine_;
};

inline WeightOffloadStep Simulated(const WeightOffloadProblem& problem,
                                   const WeightOffloadPlan& plan) {
  auto step = SimulateWeightOffload(problem, plan);
  EXPECT_TRUE(step.ok()) << step.status();
  return step.ok() ? *std::move(step) : WeightOffloadStep{};
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_TESTING_H_
