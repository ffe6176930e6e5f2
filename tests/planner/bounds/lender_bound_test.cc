#include "planner/bounds/counting/lender_bound.h"

#include <gtest/gtest.h>

#include "planner/topology.h"
#include "tests/planner/bounds/bounds_testing.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

constexpr BytesPerSecond kFastLinks{1'000'000'000'000};

// Two workers on devices with fast links and no host: F 10 us, B 20 us, 100,000 bytes saved, which
// an F computes again. When worker 1 begins its backwards 400,000 bytes are live on each.
PlanningProblem TwoFullWorkers(Bytes capacity) {
  PlanningProblem problem = ProblemOf(ScheduleOf("gpipe", 2, 4), PlainLayer(), capacity);
  problem.topology = UniformTopology(2, kFastLinks, Nanos(0));
  return problem;
}

TEST(LenderBound, CountsWhatBothCannotHold) {
  // 300,000 bytes too many. Worker 1 computes ten bytes again in each ns beyond its 150 us; worker
  // 0, which begins its four backwards behind the first one of worker 1, beyond 50 + 80 us.
  const LowerBound bound = BoundOf(TwoFullWorkers(Bytes(250'000)));
  EXPECT_EQ(PartOf(bound, "lenders while worker 1 is full"), Nanos(155'000));
}

TEST(LenderBound, SendsToTheHostWhatSharedUplinksCarry) {
  PlanningProblem problem = TwoFullWorkers(Bytes(250'000));
  problem.topology = WithHost(std::move(problem.topology), 2,
                              {.to_host = kBytePerNano, .from_host = kBytePerNano});
  // T ns carry T bytes over the one uplink, and worker 0 computes 10 (T - 130,000) again.
  EXPECT_EQ(PartOf(BoundOf(problem), "lenders while worker 1 is full"), Nanos(145'455));
}

TEST(LenderBound, HasRoomOnDevicesWithoutAWorker) {
  PlanningProblem problem = TwoFullWorkers(Bytes(250'000));
  problem.topology = UniformTopology(3, kFastLinks, Nanos(0));
  problem.topology.devices[2].memory = Bytes(100'000);
  for (int device = 0; device < 2; ++device) {
    problem.topology.devices[device].memory = Bytes(100'000);
  }
  EXPECT_EQ(PartOf(BoundOf(problem), "lenders while worker 1 is full"), Nanos(150'000));
}

TEST(LenderBound, IsNoneWhereAllHaveRoomTogether) {
  PlanningProblem problem = TwoFullWorkers(Bytes(300'000));
  problem.capacity[0] = Bytes(600'000);
  for (const BoundPart& part : BoundOf(problem).parts) {
    EXPECT_EQ(part.reason.find("lenders"), std::string::npos) << part.reason;
  }
}

}  // namespace
}  // namespace siphon
