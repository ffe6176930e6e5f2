#include "planner/weight_offload/offload_program_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/weight_offload/offload_program.h"
#include "planner/weight_offload/plan_weight_offload.h"
#include "planner/weight_offload/weight_offload_bound.h"
#include "tests/planner/weight_offload/exhaustive_step.h"
#include "tests/planner/weight_offload/weight_offload_testing.h"

namespace siphon {
namespace {

class OffloadProgramBoundTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  }
};

OffloadProgramBound Solved(const WeightOffloadProblem& problem, int most_nodes = 1'000) {
  const auto bound = SolveOffloadProgram(problem, {.most_nodes = most_nodes});
  EXPECT_TRUE(bound.ok()) << bound.status();
  return bound.value_or(OffloadProgramBound{});
}

// Two weights of 50, room for 100: in each backward, which holds a gradient, the other weight is
// away. So w_2 is sent behind B2 (equation 3: not beside it), 50; before B1 nothing else runs. w_2
// is back before F2: in 50 with B1 and F1, 48 of them idle; in these and F2 w_1 is sent.
TEST_F(OffloadProgramBoundTest, TwoLayersByHand) {
  const WeightOffloadProblem problem = EqualLayers(2, 1, 1, 50, 0, 100);
  const OffloadProgramBound bound = Solved(problem);
  EXPECT_EQ(bound.step_time, Nanos(4 + 50 + 48));
  EXPECT_EQ(bound.search, OffloadSearch::kWhole);
  EXPECT_EQ(WeightOffloadBound(problem), Nanos(100));
  // The best plan fetches w_2 only when B1 has given its gradient back.
  const auto trimmed = PlanTrimmedWeightOffload(problem);
  ASSERT_TRUE(trimmed.ok());
  EXPECT_EQ(trimmed->scheduled.step_time, Nanos(103));
}

// With forwards of 50 all transfers but that behind B2 hide.
TEST_F(OffloadProgramBoundTest, ForwardsHideTransfers) {
  EXPECT_EQ(Solved(EqualLayers(2, 50, 1, 50, 0, 100)).step_time, Nanos(102 + 50));
}

TEST_F(OffloadProgramBoundTest, IsTheComputationWhereAllFits) {
  const OffloadProgramBound bound = Solved(EqualLayers(5, 3, 6, 10, 1, 65));
  EXPECT_EQ(bound.step_time, Nanos(45));
  EXPECT_EQ(bound.search, OffloadSearch::kWhole);
}

// Three weights of 40, a gradient and room for 140: 20 are away when a backward starts. Fetches
// take nearly all of the step, of which whole weights need more.
WeightOffloadProblem BusyLink() { return EqualLayers(3, 1, 1, 40, 0, 140); }

TEST_F(OffloadProgramBoundTest, WholeWeightsTakeLonger) {
  const WeightOffloadProblem problem = BusyLink();
  const OffloadProgramBound relaxed = Solved(problem, 1);
  const OffloadProgramBound whole = Solved(problem);
  EXPECT_EQ(relaxed.search, OffloadSearch::kRelaxation);
  EXPECT_EQ(relaxed.nodes, 1);
  EXPECT_EQ(whole.search, OffloadSearch::kWhole);
  EXPECT_GT(whole.nodes, 1);
  EXPECT_LT(relaxed.step_time, Nanos(80));
  EXPECT_EQ(whole.step_time, Nanos(80)) << "two weights come back: one serves two backwards";
}

TEST_F(OffloadProgramBoundTest, EndsAtAPlanThatIsAsShort) {
  const WeightOffloadProblem problem = BusyLink();
  const OffloadProgramBound relaxed = Solved(problem, 1);
  const auto known = SolveOffloadProgram(problem, {.most_nodes = 9, .known = relaxed.step_time});
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(*known, (OffloadProgramBound{relaxed.step_time, OffloadSearch::kWhole, 1}));
}

// More nodes never make the bound smaller, and the last is CBC's own optimum of the same program.
TEST_F(OffloadProgramBoundTest, GrowsToTheMinimumThatCbcFinds) {
  RandomProblems problems(13);
  int grown = 0;
  for (int round = 0; round < 25; ++round) {
    WeightOffloadProblem problem = problems.Next(5, 40);
    problem.out.value /= 16;
    problem.in.value /= 16;
    Nanos last;
    for (const int nodes : {1, 3, 9, 2'000}) {
      const OffloadProgramBound bound = Solved(problem, nodes);
      ASSERT_GE(bound.step_time, last) << "round " << round;
      grown += last > Nanos(0) && bound.step_time > last ? 1 : 0;
      last = bound.step_time;
      if (nodes < 2'000) continue;
      ASSERT_EQ(bound.search, OffloadSearch::kWhole) << "round " << round;
    }
    const OffloadProgram made = BuildOffloadProgram(problem);
    const auto cbc = SolveIntegerProgram(made.program, 100'000);
    ASSERT_TRUE(cbc.ok()) << cbc.status();
    const double optimum = static_cast<double>(ComputeTime(problem).value) +
                           cbc->cost * static_cast<double>(made.unit.value);
    EXPECT_NEAR(static_cast<double>(last.value), std::ceil(optimum - 1e-3), 0.5)
        << "round " << round;
    for (const int lacked : made.lacked) {
      if (lacked != OffloadProgram::kNone) {
        EXPECT_NEAR(cbc->values[lacked], 0, 1e-6) << "memory bought, round " << round;
      }
    }
  }
  EXPECT_GT(grown, 5);
}

// Against all plans of small problems: never above the best of them. It may be below the bound by
// counting, which sees that memory is full until an operation ends; the program looks at memory
// when operations start.
TEST_F(OffloadProgramBoundTest, NoPlanAtAllIsShorter) {
  RandomProblems problems(14);
  int tight = 0;
  int idle = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    WeightOffloadProblem problem = EqualLayers(round % 8 == 0 ? 3 : 2, 1, 1, 1, 0, 0);
    for (WeightOffloadLayer& layer : problem.layers) {
      layer.forward = Nanos(problems.Between(1, 3));
      layer.backward = Nanos(problems.Between(1, 4));
      layer.weight = Bytes(problems.Between(1, 3));
    }
    problem.in = problem.out = BytesPerSecond(1'000'000'000 / problems.Between(1, 2));
    problem.capacity = LeastCapacity(problem) + Bytes(problems.Between(0, 3));
    const auto trimmed = PlanTrimmedWeightOffload(problem);
    ASSERT_TRUE(trimmed.ok()) << trimmed.status();
    const std::optional<Nanos> shortest =
        ShortestStepBySearch(problem, trimmed->scheduled.step_time + Nanos(1));
    ASSERT_TRUE(shortest.has_value()) << "round " << round;
    const OffloadProgramBound bound = Solved(problem);
    ASSERT_EQ(bound.search, OffloadSearch::kWhole) << "round " << round;
    ASSERT_LE(bound.step_time, *shortest) << "round " << round;
    tight += bound.step_time == *shortest ? 1 : 0;
    idle += *shortest > ComputeTime(problem) ? 1 : 0;
  }
  EXPECT_GT(idle, kRounds / 4) << "the problems are too easy";
  EXPECT_GT(tight, kRounds / 3);
}

// Where transfers compete for a slow link, the program sees more than counting does.
TEST_F(OffloadProgramBoundTest, IsMostlyAboveTheBoundByCountingOverASlowLink) {
  RandomProblems problems(15);
  int above = 0;
  int below = 0;
  double gap = 0;
  double counted_gap = 0;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    WeightOffloadProblem problem = problems.Next(8, 40);
    problem.out.value /= 16;
    problem.in.value /= 16;
    const auto trimmed = PlanTrimmedWeightOffload(problem);
    ASSERT_TRUE(trimmed.ok()) << trimmed.status();
    const Nanos ours = trimmed->scheduled.step_time;
    const Nanos bound = Solved(problem, 9).step_time;
    const Nanos counted = WeightOffloadBound(problem);
    ASSERT_LE(bound, ours) << "round " << round;
    above += bound > counted ? 1 : 0;
    below += bound < counted ? 1 : 0;
    gap += static_cast<double>(ours.value) / static_cast<double>(bound.value) - 1;
    counted_gap += static_cast<double>(ours.value) / static_cast<double>(counted.value) - 1;
  }
  EXPECT_GT(above, kRounds / 4) << "below: " << below;
  EXPECT_LT(below, kRounds / 5) << "above: " << above;
  EXPECT_LT(gap, 0.8 * counted_gap);
}

}  // namespace
}  // namespace siphon
