#include "planner/simulator/longest_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "planner/simulator/run_task_graph.h"

namespace siphon {
namespace {

using testing::ElementsAre;

TEST(LongestPath, GoesThroughLanesAndDependencies) {
  TaskGraph graph;
  const LaneId lane = graph.AddLane();
  const LaneId other = graph.AddLane();
  const TaskId first = graph.AddTask(lane, Nanos(10));
  graph.AddTask(lane, Nanos(5));
  const TaskId last = graph.AddTask(other, Nanos(1));
  graph.AddDependency(last, first);
  graph.AddTask(std::nullopt, Nanos(3));
  LongestPath path(graph);
  path.Run({Nanos(10), Nanos(5), Nanos(1), Nanos(3)});
  EXPECT_EQ(path.length(), Nanos(15));
  EXPECT_THAT(path.begin(), ElementsAre(Nanos(0), Nanos(10), Nanos(10), Nanos(0)));
  EXPECT_THAT(path.tail(), ElementsAre(Nanos(5), Nanos(0), Nanos(0), Nanos(0)));
  path.Run({Nanos(10), Nanos(5), Nanos(8), Nanos(3)});
  EXPECT_EQ(path.length(), Nanos(18));
  EXPECT_THAT(path.tail(), ElementsAre(Nanos(8), Nanos(0), Nanos(0), Nanos(0)));
}

TEST(LongestPath, QueuesOrderNothing) {
  TaskGraph graph;
  const LaneId queue = graph.AddQueue();
  graph.AddTask(queue, Nanos(4));
  graph.AddTask(queue, Nanos(7));
  LongestPath path(graph);
  path.Run({Nanos(4), Nanos(7)});
  EXPECT_EQ(path.length(), Nanos(7));
  EXPECT_THAT(path.begin(), ElementsAre(Nanos(0), Nanos(0)));
}

TEST(LongestPath, OfNothingIsNothing) {
  const TaskGraph graph;
  LongestPath path(graph);
  path.Run({});
  EXPECT_EQ(path.length(), Nanos(0));
}

// The engine, which goes from event to event, begins every task at the same moment.
TEST(LongestPath, IsTheRunOfAGraphInWhichNothingIsShared) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::minstd_rand random(seed);
    TaskGraph graph;
    std::vector<LaneId> lanes;
    for (int lane = 0; lane < 3; ++lane) lanes.push_back(graph.AddLane());
    std::vector<Nanos> durations;
    for (int task = 0; task < 30; ++task) {
      durations.emplace_back(random() % 10);
      const bool on_lane = random() % 4 != 0;
      const TaskId id = on_lane ? graph.AddTask(lanes[random() % 3], durations.back())
                                : graph.AddTask(std::nullopt, durations.back());
      for (int before = 0; before < task; ++before) {
        if (random() % 8 == 0) graph.AddDependency(id, TaskId(before));
      }
    }
    const TaskRun run = RunTaskGraph(graph);
    LongestPath path(graph);
    path.Run(durations);
    ASSERT_EQ(path.begin(), run.begin) << seed;
    ASSERT_EQ(path.length(), run.end_time) << seed;
    Nanos longest;
    for (size_t task = 0; task < durations.size(); ++task) {
      longest = std::max(longest, path.begin()[task] + durations[task] + path.tail()[task]);
    }
    ASSERT_EQ(longest, run.end_time) << seed;
  }
}

}  // namespace
}  // namespace siphon
