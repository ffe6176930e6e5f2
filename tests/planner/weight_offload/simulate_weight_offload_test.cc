#include <gtest/gtest.h>

#include <string>

#include "planner/weight_offload/layer_to_layer.h"
#include "planner/weight_offload/weight_offload_plan.h"
#include "tests/planner/weight_offload/weight_offload_testing.h"

namespace siphon {
namespace {

constexpr auto kForward = WeightTaskKind::kForward;
constexpr auto kBackward = WeightTaskKind::kBackward;
constexpr auto kSend = WeightTaskKind::kSend;
constexpr auto kFetch = WeightTaskKind::kFetch;

// Weights of 10 in memory for three; layer 1 is away while layer 2 computes.
WeightOffloadProblem TwoLayers() { return EqualLayers(2, 20, 40, 10, 0, 30); }
WeightOffloadPlan FirstLayerAway() {
  WeightOffloadPlan plan;
  plan.present = {false, true};
  plan.tasks = {{kBackward, 1, {}}, {kFetch, 0, {0}},  {kBackward, 0, {1}},
                {kSend, 0, {2}},    {kForward, 0, {}}, {kForward, 1, {}}};
  plan.deletions = {{0, {3, 4}}};
  return plan;
}

std::string ErrorOf(const WeightOffloadProblem& problem, const WeightOffloadPlan& plan) {
  const auto step = SimulateWeightOffload(problem, plan);
  EXPECT_FALSE(step.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(step.status())) << step.status();
  return std::string(step.status().message());
}

TEST(SimulateWeightOffload, RunsAPlanThatCanBeDrawn) {
  const WeightOffloadStep step = Simulated(TwoLayers(), FirstLayerAway());
  EXPECT_EQ(ToString(FirstLayerAway(), step),
            "B2 [0, 40)\n"
            "fetch 1 [40, 50)\n"
            "B1 [50, 90)\n"
            "send 1 [90, 100)\n"
            "F1 [90, 110)\n"
            "delete 1 at 110\n"
            "F2 [110, 130)\n");
  EXPECT_EQ(step.step_time, Nanos(130));
  EXPECT_EQ(step.idle, Nanos(10));
  EXPECT_EQ(step.peak, Bytes(30));
  EXPECT_EQ(step.sent, Bytes(10));
  EXPECT_EQ(step.fetched, Bytes(10));
}

TEST(SimulateWeightOffload, AStepEndsWithItsLastTransfer) {
  WeightOffloadPlan plan = FirstLayerAway();
  plan.present = {true, true};
  plan.tasks = {{kBackward, 1, {}}, {kBackward, 0, {}}, {kSend, 0, {1}},
                {kForward, 0, {}},  {kForward, 1, {}},  {kFetch, 0, {4}}};
  plan.deletions = {{0, {2, 3}}};
  EXPECT_EQ(Simulated(TwoLayers(), plan).idle, Nanos(10));
}

TEST(SimulateWeightOffload, NamesTheMemoryThatIsMissing) {
  WeightOffloadProblem problem = TwoLayers();
  problem.capacity = Bytes(29);
  EXPECT_EQ(ErrorOf(problem, FirstLayerAway()),
            "step 1: B1 at 50 ns: memory would hold 30 B, the device has 29 B");
  WeightOffloadPlan early = FirstLayerAway();
  early.tasks[1].after = {};
  EXPECT_EQ(ErrorOf(problem, early),
            "step 1: fetch 1 at 0 ns: memory would hold 30 B, the device has 29 B");
}

TEST(SimulateWeightOffload, NamesTheWeightThatIsNotThere) {
  WeightOffloadPlan plan = FirstLayerAway();
  plan.tasks[2].after = {};
  EXPECT_EQ(ErrorOf(TwoLayers(), plan), "step 1: B1 at 40 ns: the weight is not on the device");
  plan = FirstLayerAway();
  plan.deletions[0].after = {3};
  EXPECT_EQ(ErrorOf(TwoLayers(), plan), "step 1: delete 1 at 100 ns: the weight is in use");
  plan = FirstLayerAway();
  plan.present[0] = true;
  EXPECT_EQ(ErrorOf(TwoLayers(), plan),
            "step 1: fetch 1 at 40 ns: the weight is on the device already");
}

TEST(SimulateWeightOffload, NamesTheVersionThatWouldBeLost) {
  WeightOffloadPlan plan = FirstLayerAway();
  plan.tasks.erase(plan.tasks.begin() + 3);
  plan.deletions[0].after = {3};
  EXPECT_EQ(ErrorOf(TwoLayers(), plan),
            "step 1: delete 1 at 110 ns: the host does not have the latest version");
  // Sent before the backward that changes it has ended.
  plan = FirstLayerAway();
  plan.tasks[3].after = {1};
  EXPECT_EQ(ErrorOf(EqualLayers(2, 20, 40, 10, 0, 40), plan),
            "step 1: send 1 at 50 ns: its backward is changing the weight");
}

// What the first step leaves must serve the second.
TEST(SimulateWeightOffload, NamesAStepThatCannotBeRepeated) {
  WeightOffloadPlan plan = FirstLayerAway();
  plan.deletions.clear();
  EXPECT_EQ(ErrorOf(TwoLayers(), plan),
            "step 1: the weight of layer 1 is on the device when a step ends, but not when it "
            "begins");
  // Once a step is enough only while nothing changes the weight.
  plan = FirstLayerAway();
  plan.present = {true, true};
  plan.tasks = {{kBackward, 1, {}},
                {kFetch, 0, {0}},
                {kBackward, 0, {1}},
                {kForward, 0, {}},
                {kForward, 1, {}}};
  plan.deletions = {{0, {0}}};
  EXPECT_EQ(ErrorOf(EqualLayers(2, 20, 40, 10, 0, 40), plan),
            "step 2: delete 1 at 40 ns: the host does not have the latest version");
}

TEST(SimulateWeightOffload, NamesOperationsOutOfOrder) {
  WeightOffloadPlan plan = FirstLayerAway();
  std::swap(plan.tasks[4], plan.tasks[5]);
  EXPECT_EQ(ErrorOf(TwoLayers(), plan), "operation 3 of the step is F2 where F1 belongs");
  plan = FirstLayerAway();
  plan.tasks.pop_back();
  EXPECT_EQ(ErrorOf(TwoLayers(), plan), "the step has no F2");
}

TEST(LayerToLayer, ThreeLayersByHand) {
  const WeightOffloadProblem problem = EqualLayers(3, 20, 40, 10, 0, 20);
  const WeightOffloadPlan plan = LayerToLayerPlan(problem);
  const WeightOffloadStep step = Simulated(problem, plan);
  EXPECT_EQ(ToString(plan, step),
            "B3 [0, 40)\n"
            "send 3 [40, 50)\n"
            "fetch 2 [40, 50)\n"
            "delete 3 at 50\n"
            "B2 [50, 90)\n"
            "send 2 [90, 100)\n"
            "fetch 1 [90, 100)\n"
            "delete 2 at 100\n"
            "B1 [100, 140)\n"
            "send 1 [140, 150)\n"
            "F1 [150, 170)\n"
            "delete 1 at 170\n"
            "fetch 2 [170, 180)\n"
            "F2 [180, 200)\n"
            "delete 2 at 200\n"
            "fetch 3 [200, 210)\n"
            "F3 [210, 230)\n");
  EXPECT_EQ(step.idle, Nanos(50));
  EXPECT_EQ(step.peak, Bytes(20));
}

TEST(LayerToLayer, IdlesAsTheClosedFormSaysWhateverTheOperationsTake) {
  RandomProblems problems(1);
  for (int round = 0; round < 300; ++round) {
    WeightOffloadProblem problem = problems.Next(12, 40);
    problem.capacity +=
        WeightBytes(problem);  // two layers' weights may need more than one backward
    const WeightOffloadStep step = Simulated(problem, LayerToLayerPlan(problem));
    ASSERT_EQ(step.idle, LayerToLayerIdle(problem)) << "round " << round;
  }
}

}  // namespace
}  // namespace siphon
