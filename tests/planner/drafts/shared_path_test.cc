#include "planner/drafts/maps/shared_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "planner/simulator/engine/run_task_graph.h"
#include "tests/planner/drafts/longest_path.h"

namespace siphon {
namespace {

using testing::ElementsAre;

// Two lanes copy two times 10 ns each over one wire, then a task of 5 ns waits for all of it.
TEST(SharedPath, EndsNoSoonerThanItsMachineCanHaveDoneAllThatIsBefore) {
  TaskGraph graph;
  const LaneId a = graph.AddLane();
  const LaneId b = graph.AddLane();
  graph.AddTask(a, Nanos(10));
  const TaskId last_of_a = graph.AddTask(a, Nanos(10));
  graph.AddTask(b, Nanos(10));
  const TaskId last_of_b = graph.AddTask(b, Nanos(10));
  const TaskId after = graph.AddTask(std::nullopt, Nanos(5));
  graph.AddDependency(last_of_b, last_of_a);
  graph.AddDependency(after, last_of_b);
  const std::vector<Nanos> durations = {Nanos(10), Nanos(10), Nanos(10), Nanos(10), Nanos(5)};
  SharedPath path(graph, {{0, 1}, {2, 3}});
  path.Run(durations, durations, {});
  EXPECT_EQ(path.length(), Nanos(35));
  path.Run(durations, durations, {{{.chains = {0, 1}}}});
  EXPECT_EQ(path.length(), Nanos(45));
  EXPECT_THAT(path.begin(), ElementsAre(Nanos(0), Nanos(10), Nanos(0), Nanos(20), Nanos(40)));
  EXPECT_THAT(path.tail(), ElementsAre(Nanos(25), Nanos(15), Nanos(15), Nanos(5), Nanos(0)));
}

constexpr int kLanes = 4;  // that copy, the first two over wire 0, the others over wire 1
constexpr int kWires = 2;

struct Copying {
  TaskGraph graph;
  std::vector<SharedPath::Chain> chains = std::vector<SharedPath::Chain>(kLanes);
  std::vector<Nanos> durations;
  std::vector<Nanos> works;
};

// Copies at a byte a nanosecond, between tasks of two other lanes.
Copying RandomCopies(uint32_t seed, Nanos latency) {
  std::minstd_rand random(seed);
  Copying made;
  std::vector<PathId> wires;
  for (int wire = 0; wire < kWires; ++wire) {
    wires.push_back(
        made.graph.AddPath({made.graph.AddCapacity("wire", BytesPerSecond(1'000'000'000))}));
  }
  std::vector<LaneId> lanes;
  for (int lane = 0; lane < kLanes + 2; ++lane) lanes.push_back(made.graph.AddLane());
  const int tasks = 10 + static_cast<int>(random() % 30);
  for (int task = 0; task < tasks; ++task) {
    const int lane = static_cast<int>(random() % lanes.size());
    const auto amount = static_cast<int64_t>(random() % 20);
    if (lane < kLanes) {
      made.graph.AddCopy(lanes[lane], Bytes(amount), latency, wires[lane / 2]);
      made.chains[lane].push_back(task);
      made.durations.push_back(latency + Nanos(amount));
    } else {
      made.graph.AddTask(lanes[lane], Nanos(amount));
      made.durations.emplace_back(amount);
    }
    made.works.emplace_back(amount);
    for (int before = 0; before < task; ++before) {
      if (random() % 8 == 0) made.graph.AddDependency(TaskId(task), TaskId(before));
    }
  }
  return made;
}

TEST(SharedPath, BeginsNothingLaterThanARunInWhichCopiesShareFairly) {
  const std::vector<SharedPath::Machine> none;
  int longer = 0;
  for (uint32_t seed = 1; seed <= 2'000; ++seed) {
    const Nanos latency(seed % 4);
    const Copying made = RandomCopies(seed, latency);
    SharedPath path(made.graph, made.chains);
    LongestPath alone(made.graph);
    alone.Run(made.durations);
    path.Run(made.durations, made.works, none);
    ASSERT_EQ(path.begin(), alone.begin()) << seed;
    ASSERT_EQ(path.tail(), alone.tail()) << seed;
    ASSERT_EQ(path.length(), alone.length()) << seed;
    const TaskRun run = RunTaskGraph(made.graph);
    const std::vector<SharedPath::Machine> wires = {{{0, 1}, latency}, {{2, 3}, latency}};
    path.Run(made.durations, made.works, wires);
    ASSERT_LE(path.length(), run.end_time) << seed;
    ASSERT_GE(path.length(), alone.length()) << seed;
    for (size_t task = 0; task < made.durations.size(); ++task) {
      ASSERT_LE(path.begin()[task], run.begin[task]) << seed << ", task " << task;
      ASSERT_LE(path.tail()[task], run.end_time - run.end[task]) << seed << ", task " << task;
    }
    longer += path.length() > alone.length() ? 1 : 0;
  }
  EXPECT_GT(longer, 200);
}

}  // namespace
}  // namespace siphon
