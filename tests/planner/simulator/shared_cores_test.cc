#include "planner/simulator/engine/shared_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/simulator/engine/run_task_graph.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Cores that do not disturb each other.
CoreSharing UndisturbedCores(int cores) {
  CoreSharing together;
  for (int running = 1; running <= cores; ++running) together.push_back(1000 * running);
  return together;
}

// Runs one task a lane of the given works, all from the beginning: "0 [0,45)\n".
std::string Times(CoreSharing cores, const std::vector<int64_t>& works) {
  TaskGraph graph;
  graph.ShareCores(std::move(cores));
  for (const int64_t work : works) graph.AddWork(graph.AddLane(), Nanos(work));
  const TaskRun run = RunTaskGraph(graph);
  std::string text;
  for (size_t task = 0; task < works.size(); ++task) {
    absl::StrAppend(&text, task, " [", run.begin[task].value, ",", run.end[task].value, ")\n");
  }
  return text;
}

TEST(SharedCores, ThreeEqualTasksOnTwoCoresTakeHalfAsLongAgain) {
  EXPECT_EQ(Times(UndisturbedCores(2), {30, 30, 30}), "0 [0,45)\n1 [0,45)\n2 [0,45)\n");
}

TEST(SharedCores, NoTaskIsFasterThanOneCore) {
  // At two thirds until the first ends (20 done in 30), then alone on a core each.
  EXPECT_EQ(Times(UndisturbedCores(2), {20, 30, 50}), "0 [0,30)\n1 [0,40)\n2 [0,60)\n");
  EXPECT_EQ(Times(UndisturbedCores(4), {20, 30, 50}), "0 [0,20)\n1 [0,30)\n2 [0,50)\n");
}

TEST(SharedCores, CoresThatDisturbEachOtherAreSlowerTogether) {
  // Two together get 1.6 done: each 0.8 until 40 of both are done at 50; the other 20 alone.
  EXPECT_EQ(Times({1000, 1600}, {40, 60}), "0 [0,50)\n1 [0,70)\n");
}

TEST(SharedCores, ATaskThatComesLaterSlowsTheOthersFromThenOn) {
  TaskGraph graph;
  graph.ShareCores(UndisturbedCores(1));
  const TaskId first = graph.AddWork(graph.AddLane(), Nanos(30));
  const TaskId pause = graph.AddTask(std::nullopt, Nanos(10));  // needs no core
  const TaskId second = graph.AddWork(graph.AddLane(), Nanos(5));
  graph.AddDependency(second, pause);
  const TaskRun run = RunTaskGraph(graph);
  EXPECT_EQ(run.end[second.value], Nanos(20));  // half of [10,20)
  EXPECT_EQ(run.end[first.value], Nanos(35));
}

// A copy of so many bytes at one a nanosecond, with so much work, beside 10 ns of other work.
TaskRun CopyBesideWork(const CoreSharing& cores, int64_t bytes, int64_t work) {
  TaskGraph graph;
  graph.ShareCores(cores);
  graph.AddWork(graph.AddLane(), Nanos(10));
  const PathId path = graph.AddPath({graph.AddCapacity("link", BytesPerSecond(1'000'000'000))});
  graph.AddCopy(std::nullopt, Bytes(bytes), Nanos(0), path, Nanos(work));
  return RunTaskGraph(graph);
}

TEST(SharedCores, ACopyEndsWhenItsBytesAndItsWorkAreDone) {
  // Half a core each until the copy's work is done at 8.
  EXPECT_THAT(CopyBesideWork(UndisturbedCores(1), 20, 4).end, ElementsAre(Nanos(14), Nanos(20)));
  EXPECT_THAT(CopyBesideWork(UndisturbedCores(1), 7, 4).end, ElementsAre(Nanos(14), Nanos(8)));
  EXPECT_THAT(CopyBesideWork(UndisturbedCores(1), 8, 4).end, ElementsAre(Nanos(14), Nanos(8)));
  EXPECT_THAT(CopyBesideWork(UndisturbedCores(1), 3, 40).end, ElementsAre(Nanos(20), Nanos(50)));
  EXPECT_THAT(CopyBesideWork(UndisturbedCores(2), 3, 40).end, ElementsAre(Nanos(10), Nanos(40)));
  // Each has a core of its own, and copies need none.
  EXPECT_THAT(CopyBesideWork({}, 3, 40).end, ElementsAre(Nanos(10), Nanos(3)));
}

TEST(SharedCores, WorkOfNoTimeEndsAtOnce) {
  EXPECT_EQ(Times(UndisturbedCores(1), {0, 10, 0}), "0 [0,0)\n1 [0,10)\n2 [0,0)\n");
}

TEST(SharedCores, EndsAreRoundedUpToWholeNanoseconds) {
  EXPECT_EQ(Times(UndisturbedCores(2), {5, 5, 5}), "0 [0,8)\n1 [0,8)\n2 [0,8)\n");
}

TEST(SharedCores, AsMuchIsDoneAsTheCoresCanDo) {
  for (const int cores : {1, 2, 3, 5}) {
    for (int tasks = cores; tasks <= 16; ++tasks) {
      std::vector<int64_t> works;
      int64_t sum = 0;
      int64_t largest = 0;
      for (int task = 0; task < tasks; ++task) {
        works.push_back(1'000 + 37 * (task * task % 11));
        sum += works.back();
        largest = std::max(largest, works.back());
      }
      TaskGraph graph;
      graph.ShareCores(UndisturbedCores(cores));
      for (const int64_t work : works) graph.AddWork(graph.AddLane(), Nanos(work));
      const int64_t end = RunTaskGraph(graph).end_time.value;
      EXPECT_GE(end, std::max(largest, sum / cores)) << tasks << " on " << cores;
      EXPECT_LE(end, sum / cores + largest) << tasks << " on " << cores;
    }
  }
}

constexpr char kTwoWorkers[] =
    "0F0 0F1 0B0 0B1\n"
    "1F0 1B0 1F1 1B1\n";

TEST(SimulateOnSharedCores, TwoWorkersOnOneCoreTakeTurnsByHand) {
  SimulationInput input = EqualStages(ParsedSchedule(kTwoWorkers), TenNanos());
  input.cores = UndisturbedCores(1);
  // 120 ns of work in all, and never is the core idle.
  EXPECT_EQ(TimelineText(Simulated(input)),
            "0F0 [0,10) worker 0\n"
            "0F1 [10,30) worker 0\n"  // half a core, like 1F0
            "wait 0B0 [30,50) worker 0\n"
            "0B0 [50,90) worker 0\n"  // half a core: beside 1F1, then 1B1
            "wait 0B1 [90,100) worker 0\n"
            "0B1 [100,120) worker 0\n"
            "wait 1F0 [0,10) worker 1\n"
            "1F0 [10,30) worker 1\n"
            "1B0 [30,50) worker 1\n"
            "1F1 [50,70) worker 1\n"
            "1B1 [70,100) worker 1\n");
}

TEST(SimulateOnSharedCores, ACoreForEachWorkerChangesNothing) {
  SimulationInput input = EqualStages(ParsedSchedule(kTwoWorkers), TenNanos());
  input.transport.latency = Nanos(3);
  const SimulatedStep alone = Simulated(input);
  input.cores = UndisturbedCores(2);
  EXPECT_EQ(Simulated(input), alone);
}

TEST(SimulateOnSharedCores, RefusesCoresThatDoMoreThanTheyCan) {
  SimulationInput input = EqualStages(ParsedSchedule(kTwoWorkers), TenNanos());
  input.cores = {1000, 2001};
  EXPECT_THAT(std::string(Simulate(input).status().message()),
              StartsWith("cores: 2 running workers get 2001 thousandths of a core together; write "
                         "1 to 2000"));
  input.cores = {0};
  EXPECT_THAT(std::string(Simulate(input).status().message()), HasSubstr("write 1 to 1000"));
}

TEST(SimulateWholeBackward, TakesWhatWasMeasuredInOneGo) {
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0 0F1 0I1 0W1\n"), TenNanos());
  input.stages[0].whole_backward = Nanos(15);
  EXPECT_EQ(TimelineText(Simulated(input)),
            "0F0 [0,10) worker 0\n"
            "0B0 [10,25) worker 0\n"
            "0F1 [25,35) worker 0\n"
            "0I1 [35,45) worker 0\n"
            "0W1 [45,55) worker 0\n");
}

// Three forwards of one stage each, 8 bytes between them; the second worker is slow to post.
constexpr char kLateReceives[] =
    "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2\n"
    "1RECV_F0 1F0 1RECV_F1 1F1 1RECV_F2 1F2\n";

SimulationInput LateReceives() {
  SimulationInput input = EqualStages(ParsedSchedule(kLateReceives), {.output = Bytes(8)});
  input.stages[0].forward = Nanos(10);
  input.stages[1].forward = Nanos(30);
  input.transport.latency = Nanos(6);
  return input;
}

TEST(SimulateMessages, WithoutRoomWaitForTheirReceive) {
  // Each message goes when the F before its RECV is done.
  EXPECT_THAT(TimelineText(Simulated(LateReceives())),
              HasSubstr("wait 1F0 [0,16) worker 1\n1F0 [16,46) worker 1\nwait 1F1 [46,52) worker "
                        "1\n1F1 [52,82) worker 1\nwait 1F2 [82,88) worker 1\n1F2 [88,118)"));
}

TEST(SimulateMessages, WithRoomAreThereBeforeTheirReceive) {
  SimulationInput input = LateReceives();
  input.transport.room = 2;
  EXPECT_THAT(TimelineText(Simulated(input)),
              HasSubstr("1F0 [16,46) worker 1\n1F1 [46,76) worker 1\n1F2 [76,106) worker 1\n"));
}

// One stage of two layers on one core. The first layer's 100 bytes take 10 ns to the host, and half
// as long of a core.
TEST(SimulateOnSharedCores, CopiesOfTensorsTakeTheirPartOfTheCores) {
  const LayerCost layer{.forward = Nanos(5),
                        .input_backward = Nanos(5),
                        .weight_backward = Nanos(5),
                        .stash = Bytes(100)};
  SimulationInput input = EqualStages(
      ParsedSchedule("0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0B1 0SWAP_IN0.0 0B0\n"), TenNanos());
  input.stages[0].stash = Bytes(200);
  input.layers = {{layer, layer}};
  const TensorGroup group{.layers = {0, 1}, .bytes = Bytes(100)};
  input.memory.stages = {{.groups = {{group, {.placement = Placement::kHostSwap}}}}};
  input.transport.host_rate = BytesPerSecond(10'000'000'000);
  input.transport.swap_rate = BytesPerSecond(20'000'000'000);
  input.cores = UndisturbedCores(1);
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT0.0 [5,15) device 0, copies to host\n"
            "0SWAP_IN0.0 [45,55) device 0, copies from host\n");
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,15) worker 0\n"  // its second layer at half a core
            "0F1 [15,25) worker 0\n"
            "0B1 [25,45) worker 0\n"
            "0B0 [45,70) worker 0\n");
  input.cores = UndisturbedCores(2);
  EXPECT_EQ(Simulated(input).step_time, Nanos(60));
}

TEST(SimulateMessages, FillTheRoomAndThenWait) {
  SimulationInput input = LateReceives();
  input.transport.room = 1;
  const SimulatedStep step = Simulated(input);
  // The second goes once the first has its RECV, at once; the third with the second's, at 46.
  ASSERT_EQ(step.lanes.size(), 2u);
  std::vector<int64_t> begins;
  for (const Interval& message : step.lanes[0].intervals) begins.push_back(message.begin.value);
  EXPECT_THAT(begins, ElementsAre(10, 20, 46));
}

TEST(SimulateMessages, AreCopiedByTheWorkersThemselves) {
  SimulationInput input = LateReceives();
  input.transport.room = 2;
  input.transport.copy_rate = BytesPerSecond(4'000'000'000);  // 2 ns
  EXPECT_EQ(TimelineText(Simulated(input)),
            "0F0 [0,10) worker 0\n"
            "0SEND_F0 [10,12) worker 0\n"
            "0F1 [12,22) worker 0\n"
            "0SEND_F1 [22,24) worker 0\n"
            "0F2 [24,34) worker 0\n"
            "0SEND_F2 [34,36) worker 0\n"
            "wait 1F0 [0,18) worker 1\n"
            "1F0 [18,50) worker 1\n"
            "1F1 [50,82) worker 1\n"
            "1F2 [82,114) worker 1\n");
}

}  // namespace
}  // namespace siphon
