#include "planner/simulator/engine/run_task_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

// "0 [0,10)\n1 [10,12)\n": all tasks.
std::string Times(const TaskRun& run) {
  std::string text;
  for (size_t task = 0; task < run.begin.size(); ++task) {
    absl::StrAppend(&text, task, " [", run.begin[task].value, ",", run.end[task].value, ")\n");
  }
  return text;
}

TEST(RunTaskGraph, ALaneTakesOneTaskAtATimeInTheOrderGiven) {
  TaskGraph graph;
  const LaneId lane = graph.AddLane();
  const LaneId other = graph.AddLane();
  const TaskId slow = graph.AddTask(other, Nanos(7));
  const TaskId first = graph.AddTask(lane, Nanos(10));
  graph.AddDependency(first, slow);
  graph.AddTask(lane, Nanos(5));  // could start at 0, but stands behind `first`
  EXPECT_EQ(Times(RunTaskGraph(graph)), "0 [0,7)\n1 [7,17)\n2 [17,22)\n");
}

TEST(RunTaskGraph, AQueueTakesWhatIsReadyFirst) {
  TaskGraph graph;
  const LaneId queue = graph.AddQueue();
  const TaskId slow = graph.AddTask(std::nullopt, Nanos(7));
  const TaskId first = graph.AddTask(queue, Nanos(10));
  graph.AddDependency(first, slow);
  graph.AddTask(queue, Nanos(5));
  graph.AddTask(queue, Nanos(4));
  const TaskId last = graph.AddTask(queue, Nanos(1));
  graph.AddDependency(last, first);
  EXPECT_EQ(Times(RunTaskGraph(graph)), "0 [0,7)\n1 [9,19)\n2 [0,5)\n3 [5,9)\n4 [19,20)\n");
}

TEST(RunTaskGraph, AnEmptyGraphTakesNoTime) {
  const TaskRun run = RunTaskGraph(TaskGraph());
  EXPECT_EQ(run.end_time, Nanos(0));
  EXPECT_TRUE(run.stuck.empty());
}

TEST(RunTaskGraph, TasksWithoutALaneStartWhenAllTheyWaitForHasEnded) {
  TaskGraph graph;
  const TaskId a = graph.AddTask(std::nullopt, Nanos(3));
  const TaskId b = graph.AddTask(std::nullopt, Nanos(8));
  const TaskId both = graph.AddTask(std::nullopt, Nanos(0));
  graph.AddDependency(both, a);
  graph.AddDependency(both, b);
  const TaskRun run = RunTaskGraph(graph);
  EXPECT_EQ(Times(run), "0 [0,3)\n1 [0,8)\n2 [8,8)\n");
  EXPECT_THAT(run.events,
              ElementsAre(TaskEvent{a, TaskMoment::kBegin}, TaskEvent{b, TaskMoment::kBegin},
                          TaskEvent{a, TaskMoment::kEnd}, TaskEvent{b, TaskMoment::kEnd},
                          TaskEvent{both, TaskMoment::kBegin}, TaskEvent{both, TaskMoment::kEnd}));
}

TEST(RunTaskGraph, TasksThatWaitForEachOtherAreStuck) {
  TaskGraph graph;
  const LaneId lane = graph.AddLane();
  const TaskId first = graph.AddTask(lane, Nanos(1));
  const TaskId second = graph.AddTask(lane, Nanos(1));
  const TaskId free = graph.AddTask(std::nullopt, Nanos(4));
  graph.AddDependency(first, second);
  const TaskRun run = RunTaskGraph(graph);
  EXPECT_THAT(run.stuck, ElementsAre(first, second));
  EXPECT_EQ(run.end[free.value], Nanos(4));
  EXPECT_EQ(run.begin[first.value], Nanos(-1));
}

// Copies through one link of 1 GB/s, each in a lane of its own, beginning at the given times.
struct Copy {
  int64_t begin;
  int64_t bytes;
};
TaskRun RunCopies(const std::vector<Copy>& copies, int64_t latency = 0) {
  TaskGraph graph;
  const PathId path = graph.AddPath({graph.AddCapacity("link", BytesPerSecond(kGigabyte))});
  std::vector<TaskId> tasks;
  for (const Copy& copy : copies) {
    tasks.push_back(graph.AddCopy(std::nullopt, Bytes(copy.bytes), Nanos(latency), path));
  }
  for (size_t index = 0; index < copies.size(); ++index) {
    const TaskId before = graph.AddTask(std::nullopt, Nanos(copies[index].begin));
    graph.AddDependency(tasks[index], before);
  }
  TaskRun run = RunTaskGraph(graph);
  run.begin.resize(copies.size());
  run.end.resize(copies.size());
  return run;
}

TEST(RunTaskGraph, OneCopyTakesLatencyAndBytesOverRate) {
  EXPECT_EQ(Times(RunCopies({{0, 100}}, 7)), "0 [0,107)\n");
}

TEST(RunTaskGraph, TwoCopiesOnOneLinkGetHalfEach) {
  // Both at half speed until the small one is through at 200; then 200 bytes are left of the other.
  const TaskRun run = RunCopies({{0, 100}, {0, 300}});
  EXPECT_EQ(Times(run), "0 [0,200)\n1 [0,400)\n");
  EXPECT_EQ(run.end_time, Nanos(400)) << "not when it was to end while there were two";
  EXPECT_THAT(run.uses, ElementsAre(CapacityUse{Bytes(400), Nanos(400)}));
}

TEST(RunTaskGraph, ACopyThatJoinsLateSlowsTheFirstFromThenOn) {
  // 0: 60 bytes alone until 60, then 40 bytes at half speed until 140. 1: 40 bytes by 140, 60
  // alone.
  EXPECT_EQ(Times(RunCopies({{0, 100}, {60, 100}})), "0 [0,140)\n1 [60,200)\n");
}

TEST(RunTaskGraph, EndsAreRoundedUpToWholeNanoseconds) {
  // 333,333,333 bytes a second each: 10 bytes take 30.00000003 ns.
  EXPECT_EQ(Times(RunCopies({{0, 10}, {0, 10}, {0, 10}})), "0 [0,31)\n1 [0,31)\n2 [0,31)\n");
}

TEST(RunTaskGraph, AnEmptyCopyTakesItsLatencyOnly) {
  EXPECT_EQ(Times(RunCopies({{5, 0}, {0, 20}}, 3)), "0 [5,8)\n1 [0,23)\n");
}

TEST(RunTaskGraph, WithoutALimitACopyTakesItsLatencyOnly) {
  TaskGraph graph;
  const PathId path = graph.AddPath({graph.AddCapacity("no limit known", BytesPerSecond(0))});
  graph.AddCopy(std::nullopt, Bytes(1'000'000), Nanos(4), path);
  const TaskRun run = RunTaskGraph(graph);
  EXPECT_EQ(Times(run), "0 [0,4)\n");
  EXPECT_EQ(run.uses[0].bytes, Bytes(1'000'000));
}

TEST(RunTaskGraph, SharesAreMaxMinFair) {
  // A textbook network: copies a, b through link 1 of 1 GB/s; b, c through link 2 of 3 GB/s; and d
  // through link 2 alone but with a cap of 0.4 GB/s. a and b get 0.5, d 0.4, c the 2.1 that remain.
  TaskGraph graph;
  const CapacityId link1 = graph.AddCapacity("link 1", BytesPerSecond(kGigabyte));
  const CapacityId link2 = graph.AddCapacity("link 2", BytesPerSecond(3 * kGigabyte));
  const CapacityId cap = graph.AddCapacity("cap of d", BytesPerSecond(400'000'000));
  const PathId only1 = graph.AddPath({link1});
  const PathId both = graph.AddPath({link1, link2});
  const PathId only2 = graph.AddPath({link2});
  const PathId capped = graph.AddPath({cap, link2});
  graph.AddCopy(std::nullopt, Bytes(500), Nanos(0), only1);
  graph.AddCopy(std::nullopt, Bytes(500), Nanos(0), both);
  graph.AddCopy(std::nullopt, Bytes(2100), Nanos(0), only2);
  graph.AddCopy(std::nullopt, Bytes(400), Nanos(0), capped);
  EXPECT_EQ(Times(RunTaskGraph(graph)), "0 [0,1000)\n1 [0,1000)\n2 [0,1000)\n3 [0,1000)\n");
}

TEST(RunTaskGraph, BothDirectionsOfAWireSlowEachOther) {
  // 26 GB/s alone, 18 while the other direction runs (PCIe 4 x16, measured). Out: 2600 bytes, alone
  // for 50 ns (1300 bytes), then with `in`, which has 720 bytes: 40 ns, in which out moves 720;
  // then alone again: 580 bytes in 22.3 ns.
  TaskGraph graph;
  const CapacityId out = graph.AddCapacity("out", BytesPerSecond(26 * kGigabyte));
  const CapacityId in = graph.AddCapacity("in", BytesPerSecond(26 * kGigabyte));
  graph.JoinDirections(out, BytesPerSecond(18 * kGigabyte), in, BytesPerSecond(18 * kGigabyte));
  const TaskId first = graph.AddCopy(std::nullopt, Bytes(2600), Nanos(0), graph.AddPath({out}));
  const TaskId second = graph.AddCopy(std::nullopt, Bytes(720), Nanos(50), graph.AddPath({in}));
  const TaskRun run = RunTaskGraph(graph);
  EXPECT_EQ(run.end[second.value], Nanos(90));
  EXPECT_EQ(run.end[first.value], Nanos(113));
  EXPECT_THAT(run.uses, ElementsAre(CapacityUse{Bytes(2600), Nanos(113)},
                                    CapacityUse{Bytes(720), Nanos(40)}));
}

TEST(RunTaskGraph, MoreCopiesThanBytesASecondStillEnd) {
  TaskGraph graph;
  const PathId path = graph.AddPath({graph.AddCapacity("trickle", BytesPerSecond(2))});
  for (int copy = 0; copy < 3; ++copy) graph.AddCopy(std::nullopt, Bytes(1), Nanos(0), path);
  EXPECT_EQ(RunTaskGraph(graph).end_time, Nanos(kGigabyte));
}

}  // namespace
}  // namespace siphon
