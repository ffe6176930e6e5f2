#include "planner/bounds/facts/step_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/simulator/simulate.h"
#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

// Two workers, three microbatches, messages of 5 us:
// worker 0  F0 [0,10) F1 [10,20) B0 [50,70) F2 [70,80) B1 [80,100) B2 [120,140)
// worker 1  F0 [15,25) B0 [25,45) F1 [45,55) B1 [55,75) F2 [85,95) B2 [95,115)
PlanningProblem TwoWorkers() {
  PlanningProblem problem = ProblemOf(ScheduleOf("1f1b", 2, 3), PlainLayer(), Bytes(0));
  problem.transport.latency = Nanos(5'000);
  return problem;
}

TEST(StepPaths, AreThoseOfATimelineDrawnByHand) {
  const StepPaths paths = BoundFactsOf(TwoWorkers()).value().paths;
  EXPECT_EQ(paths.step_time(), Nanos(140'000));
  EXPECT_EQ(paths.Head({0, 2}), Nanos(50'000));   // 0B0
  EXPECT_EQ(paths.Head({1, 4}), Nanos(85'000));   // 1F2
  EXPECT_EQ(paths.Tail({0, 3}), Nanos(70'000));   // 0F2
  EXPECT_EQ(paths.Tail({1, 3}), Nanos(75'000));   // 1B1, by 0B1, not by 1F2
  EXPECT_EQ(paths.Work(0, 2, 5), Nanos(50'000));  // B0 F2 B1
  EXPECT_EQ(paths.PathsWithin(0, 2, 5),
            (std::vector<Nanos>{Nanos(70'000), Nanos(50'000), Nanos(20'000), Nanos(0)}));
}

TEST(StepPaths, AreTheSimulatedTimeWhenMessagesShareNothing) {
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    const absl::StatusOr<Schedule> schedule =
        BuildSchedule(entry.name, {.workers = 4, .chunks = entry.chunks, .microbatches = 8});
    if (!schedule.ok()) continue;          // not a shape, or not without options, that it takes
    if (schedule->replicas > 1) continue;  // which exchange gradients
    PlanningProblem problem = ProblemOf(*schedule, PlainLayer(), Bytes(0));
    problem.transport.latency = Nanos(700);
    const SimulationInput input{.schedule = *schedule,
                                .stages = StageCosts(problem.profile, problem.partition),
                                .transport = problem.transport};
    EXPECT_EQ(BoundFactsOf(problem).value().paths.step_time(), Simulate(input).value().step_time)
        << entry.name;
  }
}

TEST(StepPaths, RefuseAScheduleThatWaitsForItself) {
  PlanningProblem problem = TwoWorkers();
  problem.schedule = ParseSchedule("0B0 0F0\n1F0 1B0\n").value();
  EXPECT_EQ(BoundFactsOf(problem).status(),
            absl::FailedPreconditionError("4 actions of the schedule wait for each other"));
}

// Among the first and the third action of worker 0, F0 and B0, and B0 of worker 1: B0 waits for
// that and its message, and for F0 by way of F1; that waits for F0 by way of worker 1's F0.
TEST(StepPaths, LinkWhatIsMarkedByWayOfTheRest) {
  const StepPaths paths = BoundFactsOf(TwoWorkers()).value().paths;
  std::vector<bool> marked(paths.nodes(), false);
  const size_t forward = paths.NodeOf({0, 0});
  const size_t backward = paths.NodeOf({0, 2});
  const size_t other = paths.NodeOf({1, 1});
  for (const size_t node : {forward, backward, other}) marked[node] = true;
  std::vector<PathLink> links = paths.LinksAmong(marked);
  std::sort(links.begin(), links.end(), [](const PathLink& a, const PathLink& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  EXPECT_EQ(links, (std::vector<PathLink>{{forward, backward, Nanos(10'000)},
                                          {forward, other, Nanos(15'000)},
                                          {other, backward, Nanos(5'000)}}));
}

}  // namespace
}  // namespace siphon
