#include "planner/bounds/linear/linear_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/bounds/linear/solve_linear_program.h"
#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

// Minimise t with t >= x + 2 y, x + 5 y >= 4, x <= 3, y <= 1: at y = 0.8, x = 0 it is 1.6; with
// whole y, 2.
LinearProgram SmallProgram() {
  LinearProgram program;
  const int t = program.AddColumn(0, 100, 1);
  const int x = program.AddColumn(0, 3);
  const int y = program.AddColumn(0, 1);
  program.columns[y].kind = ColumnKind::kInteger;
  program.AddRow({{t, 1}, {x, -1}, {y, -2}}, 0);
  program.AddRow({{x, 1}, {y, 5}}, 4);
  return program;
}

TEST(SafeBound, IsTheMinimumForOptimalMultipliers) {
  EXPECT_NEAR(SafeBound(SmallProgram(), {1, 0.4}), 1.6, 1e-12);
}

TEST(SafeBound, IsBelowTheMinimumForAllMultipliers) {
  for (int seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    EXPECT_LE(SafeBound(SmallProgram(), {dice.Roll(-2, 20) / 10.0, dice.Roll(-2, 20) / 10.0}), 1.6)
        << seed;
  }
}

TEST(SolveLinearProgram, FindsTheMinimumAndItsMultipliersAndPrintsNothing) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  testing::internal::CaptureStdout();
  const LinearSolution solution = SolveLinearProgram(SmallProgram()).value();
  const IntegerSolution whole = SolveIntegerProgram(SmallProgram(), 100).value();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(solution.values,
              testing::ElementsAre(testing::DoubleNear(1.6, 1e-9), testing::DoubleNear(0, 1e-9),
                                   testing::DoubleNear(0.8, 1e-9)));
  EXPECT_NEAR(SafeBound(SmallProgram(), solution.multipliers), 1.6, 1e-9);
  EXPECT_NEAR(whole.cost, 2, 1e-9);
  EXPECT_NEAR(whole.bound, 2, 1e-9);
}

TEST(SolveLinearProgram, SaysWhereItStopsAndIsGoodForABoundAllTheSame) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  EXPECT_EQ(SolveLinearProgram(SmallProgram())->end, SolverEnd::kOptimal);
  for (const int64_t work : {0, 2}) {  // iterations of two rows
    const auto stopped = SolveLinearProgram(SmallProgram(), work);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_EQ(stopped->end, SolverEnd::kStopped) << work;
    EXPECT_LE(SafeBound(SmallProgram(), stopped->multipliers), 1.6);
  }
}

TEST(SolveLinearProgram, SaysThatNoValuesMeetAllRows) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  LinearProgram program = SmallProgram();
  program.AddRow({{1, -1}, {2, -5}}, -3);
  EXPECT_EQ(SolveLinearProgram(program).status(),
            absl::FailedPreconditionError("no values meet all rows of the linear program"));
  EXPECT_EQ(SolveIntegerProgram(program, 100).status(),
            absl::FailedPreconditionError("no values meet all rows of the linear program"));
}

TEST(SolveLinearProgram, IsUnavailableWithoutASolver) {
  if (HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has CBC";
  EXPECT_EQ(SolveLinearProgram(SmallProgram()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace siphon
