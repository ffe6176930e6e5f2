#include "planner/simulator/engine/graph_clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/simulator/engine/contract_graph.h"
#include "planner/simulator/engine/run_task_graph.h"
#include "tests/planner/simulator/random_graph.h"

namespace siphon {
namespace {

constexpr Nanos kWhenever(std::numeric_limits<int64_t>::max() / 2);

std::vector<Nanos> NoTails(const TaskGraph& graph) {
  return std::vector<Nanos>(graph.tasks().size());
}

// What is left from each task's begin on, as it went.
std::vector<Nanos> TailsOf(const TaskRun& run) {
  std::vector<Nanos> tails;
  for (const Nanos begin : run.begin) tails.push_back(run.end_time - begin);
  return tails;
}

// Every other one without anything in a queue.
TaskGraph RandomGraph(uint64_t seed) {
  GraphDice dice(seed);
  Pieces parts = dice.RollPieces(2 + dice.Roll(3), 60);
  for (std::vector<Piece>& part : parts) {
    for (Piece& piece : part) {
      if (seed % 2 == 0 && piece.kind == Piece::Kind::kQueued) piece.kind = Piece::Kind::kTask;
    }
  }
  return GraphOf(parts, {});
}

TEST(GraphClock, EndsWhenTheRunDoes) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const TaskGraph graph = RandomGraph(seed);
    const TaskRun run = RunTaskGraph(graph);
    GraphClock clock(graph);
    EXPECT_EQ(clock.EndWithin(graph, kWhenever, NoTails(graph)), run.end_time) << seed;
    EXPECT_EQ(clock.EndWithin(graph, run.end_time, TailsOf(run)), run.end_time) << "again " << seed;
    EXPECT_EQ(clock.EndWithin(graph, run.end_time - Nanos(1), NoTails(graph)), std::nullopt);
    EXPECT_EQ(clock.EndWithin(graph, run.end_time - Nanos(1), TailsOf(run)), std::nullopt);
  }
}

// Two copies of 100 bytes, one behind the other in their lane; a byte a nanosecond, or two.
TEST(GraphClock, GoesByTheWaysThatCopiesHaveNow) {
  TaskGraph graph;
  const LaneId lane = graph.AddLane();
  const PathId slow = graph.AddPath({graph.AddCapacity("slow", BytesPerSecond(1'000'000'000))});
  const PathId fast = graph.AddPath({graph.AddCapacity("fast", BytesPerSecond(2'000'000'000))});
  const TaskId first = graph.AddCopy(lane, Bytes(100), Nanos(7), slow);
  graph.AddCopy(lane, Bytes(100), Nanos(7), slow);
  GraphClock clock(graph);
  EXPECT_EQ(clock.EndWithin(graph, kWhenever, NoTails(graph)), Nanos(214));
  graph.Reroute(first, fast, Nanos(1));
  EXPECT_EQ(clock.EndWithin(graph, kWhenever, NoTails(graph)), Nanos(51 + 107));
}

TEST(GraphClock, OfNothingIsOverAtOnce) {
  const TaskGraph graph;
  EXPECT_EQ(GraphClock(graph).EndWithin(graph, Nanos(0), {}), Nanos(0));
}

TEST(ContractGraph, IsOverAtTheSameMomentWithFewerTasks) {
  size_t tasks = 0;
  size_t left = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const TaskGraph graph = RandomGraph(seed);
    const TaskGraph small = ContractGraph(graph);
    EXPECT_EQ(RunTaskGraph(small).end_time, RunTaskGraph(graph).end_time) << seed;
    if (seed % 2 == 1) continue;  // of queues less can be said
    tasks += graph.tasks().size();
    left += small.tasks().size();
  }
  EXPECT_LT(left, tasks * 9 / 10);
}

// A lane of 10, 0, 20 and 30, of which a copy waits for the second: what is left is 10, the copy,
// and 50.
TEST(ContractGraph, JoinsWhatFollowsAndLeavesOutWhatTakesNoTime) {
  TaskGraph graph;
  const LaneId lane = graph.AddLane();
  const PathId path = graph.AddPath({graph.AddCapacity("link", BytesPerSecond(1'000'000'000))});
  graph.AddTask(lane, Nanos(10));
  const TaskId marker = graph.AddTask(lane, Nanos(0));
  const TaskId copy = graph.AddCopy(graph.AddLane(), Bytes(70), Nanos(0), path);
  graph.AddDependency(copy, marker);
  graph.AddTask(lane, Nanos(20));
  graph.AddTask(lane, Nanos(30));
  const TaskGraph small = ContractGraph(graph);
  ASSERT_EQ(small.tasks().size(), 3);
  EXPECT_EQ(small.tasks()[0].duration, Nanos(10));
  EXPECT_EQ(small.tasks()[1].bytes, Bytes(70));
  EXPECT_EQ(small.tasks()[2].duration, Nanos(50));
  EXPECT_EQ(RunTaskGraph(small).end_time, Nanos(80));
}

TEST(ContractGraph, LeavesWorkOnSharedCoresAlone) {
  GraphDice dice(1);
  const TaskGraph graph = GraphOf(dice.RollPieces(3, 60), {1000, 1900});
  EXPECT_EQ(ContractGraph(graph).tasks().size(), graph.tasks().size());
}

}  // namespace
}  // namespace siphon
