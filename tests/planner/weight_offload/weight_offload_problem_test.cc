#include "planner/weight_offload/weight_offload_problem.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/weight_offload/weight_offload_testing.h"

namespace siphon {
namespace {

WeightOffloadProblem ThreeLayers() {
  WeightOffloadProblem problem = EqualLayers(3, 2, 4, 0, 0, 1000);
  problem.input = Bytes(1);
  problem.layers[0].weight = Bytes(10);
  problem.layers[1].weight = Bytes(20);
  problem.layers[2].weight = Bytes(30);
  problem.layers[0].activation = Bytes(2);
  problem.layers[1].activation = Bytes(3);
  problem.layers[2].activation = Bytes(4);
  return problem;
}

TEST(WeightOffloadProblem, AStepRunsFromTheLastBackwardToTheLastForward) {
  const WeightOffloadProblem problem = ThreeLayers();
  std::string order;
  for (int operation = 0; operation < OperationCount(problem); ++operation) {
    order += OperationName(problem, operation) + " ";
  }
  EXPECT_EQ(order, "B3 B2 B1 F1 F2 F3 ");
  EXPECT_EQ(ComputeTime(problem), Nanos(18));
}

// Equation 1 by hand: a_0 .. a_3 are 1, 2, 3, 4.
TEST(WeightOffloadProblem, OperationsHoldActivationsAndOneGradient) {
  const std::vector<OperationMemory> expected = {
      {Bytes(30 + 10), Bytes(6)},  // B3: gradient of w_3, all activations; then a_0, a_1, a_2
      {Bytes(20 + 6), Bytes(3)},   // B2
      {Bytes(10 + 3), Bytes(1)},   // B1
      {Bytes(3), Bytes(3)},        // F1
      {Bytes(6), Bytes(6)},        // F2
      {Bytes(10), Bytes(10)},      // F3
  };
  EXPECT_EQ(OperationMemories(ThreeLayers()), expected);
}

TEST(WeightOffloadProblem, TheAlgorithmsOverflowCountsTheOperationsOwnWeightTwice) {
  WeightOffloadProblem problem = ThreeLayers();
  problem.capacity = Bytes(90);
  EXPECT_EQ(LeastOverflows(problem), (std::vector<Bytes>{Bytes(10), Bytes(-4), Bytes(-17),
                                                         Bytes(-27), Bytes(-24), Bytes(-20)}));
  EXPECT_EQ(Overflows(problem), (std::vector<Bytes>{Bytes(40), Bytes(16), Bytes(-7), Bytes(-17),
                                                    Bytes(-4), Bytes(10)}));
}

TEST(WeightOffloadProblem, RefusesWhatCannotRun) {
  EXPECT_EQ(CheckWeightOffloadProblem({}).message(), "there is no layer");
  WeightOffloadProblem problem = ThreeLayers();
  problem.layers[1].forward = Nanos(0);
  EXPECT_EQ(CheckWeightOffloadProblem(problem).message(),
            "layer 2 ('block 2'): forward 0 ns and backward 4 ns must each be at least 1 ns");
  problem = ThreeLayers();
  problem.capacity = Bytes(69);
  const absl::Status status = CheckWeightOffloadProblem(problem);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(),
            "B3 of layer 3 ('block 3') needs 70 B with no other weight in memory; the device has "
            "69 B");
  problem.capacity = Bytes(70);
  EXPECT_TRUE(CheckWeightOffloadProblem(problem).ok());
  problem.out = BytesPerSecond(0);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckWeightOffloadProblem(problem)));
}

TEST(WeightOffloadProblem, RefusesNumbersWhoseSumsOverflow) {
  WeightOffloadProblem problem = ThreeLayers();
  problem.layers[0].weight = Bytes(int64_t{1} << 62);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckWeightOffloadProblem(problem)));
  problem = ThreeLayers();
  for (WeightOffloadLayer& layer : problem.layers) layer.backward = Nanos(int64_t{1} << 50);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckWeightOffloadProblem(problem)));
  problem = EqualLayers(2, 1, 1, int64_t{1} << 40, 0, int64_t{1} << 50);
  problem.in = BytesPerSecond(1);
  EXPECT_EQ(CheckWeightOffloadProblem(problem).message(),
            "a link of 1 B/s takes more than 1125899906842624 ns for all weights, which is not "
            "counted");
}

}  // namespace
}  // namespace siphon
