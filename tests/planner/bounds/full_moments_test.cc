#include "planner/bounds/facts/full_moments.h"

#include <gtest/gtest.h>

#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/linear/solve_linear_program.h"
#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

// F takes 10 us and B 20: 0F0 0F1 0F2 0B0 0B1 0B2, and the same on worker 1 from 10 us on, whose B0
// begins when all forwards are through and no backward of worker 0 can have begun.
TEST(FullMoments, OfGpipeAreAtTheFirstBackwardOfTheLastWorker) {
  const PlanningProblem problem =
      ProblemOf(ScheduleOf("gpipe", 2, 3), PlainLayer(), Bytes(150'000));
  const std::vector<FullMoment> moments = FactsOf(problem).moments;
  ASSERT_EQ(moments.size(), 1u);
  EXPECT_EQ(moments[0].worker, 1);
  ASSERT_EQ(moments[0].others.size(), 1u);
  const LiveThen& then = moments[0].others[0];
  EXPECT_EQ(then.worker, 0);
  EXPECT_EQ(then.live, std::vector<int>{3});
  EXPECT_EQ(then.head, Nanos(10'000));
  EXPECT_EQ(then.rest, Nanos(60'000));
  EXPECT_EQ(then.tail, Nanos(0));
}

TEST(FullMoments, AreNoneWhereNothingIsTooMuch) {
  const PlanningProblem problem =
      ProblemOf(ScheduleOf("gpipe", 2, 3), PlainLayer(), Bytes(1'000'000));
  EXPECT_TRUE(FactsOf(problem).moments.empty());
}

// Both hold 300,000 bytes then, and have room for 150,000 each: over links as fast as one likes
// they lend each other nothing, and 300,000 bytes are computed again behind that moment, 40 us
// after the begin, at 10 us for 100,000. Worker 0 has 60 us to do behind it and worker 1 80: it is
// even when worker 0 takes 250,000 of them.
TEST(FullMoments, LetFullWorkersLendEachOtherNothing) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  PlanningProblem problem = ProblemOf(ScheduleOf("gpipe", 2, 3), PlainLayer(), Bytes(150'000));
  problem.topology = UniformTopology(2, kBytePerNano * 1'000'000, Nanos(0));
  for (TopologyLink& link : problem.topology.links) link.wires = 1;
  const Nanos bound = *PartOf(BoundOf(problem), "linear program");
  EXPECT_LE(bound, Nanos(125'000));
  EXPECT_GE(bound, Nanos(124'990));
  // Worker 0 alone with too little: worker 1 takes it all.
  problem.capacity[1] = Bytes(1'000'000);
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(120'000));
}

}  // namespace
}  // namespace siphon
