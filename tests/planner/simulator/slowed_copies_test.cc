#include "planner/simulator/engine/slowed_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

// "copy 1 [10,25) by link\n"
std::string SlowedText(const TaskGraph& graph) {
  std::string text;
  for (const SlowedCopy& slowed : FindSlowedCopies(RunTaskGraph(graph))) {
    absl::StrAppend(&text, "copy ", slowed.copy.value, " [", slowed.begin.value, ",",
                    slowed.end.value, ") by ", graph.capacities()[slowed.by.value].name, "\n");
  }
  return text;
}

BytesPerSecond Gigabytes(int64_t rate) { return BytesPerSecond(rate * kGigabyte); }

// 4 bytes a nanosecond: copy 0 has them alone until copy 1 begins, half of them until it ends.
TEST(SlowedCopies, ShareWhatTheyBothPass) {
  TaskGraph graph;
  const PathId path = graph.AddPath({graph.AddCapacity("link", Gigabytes(4))});
  graph.AddCopy(std::nullopt, Bytes(80), Nanos(0), path);
  graph.AddCopy(std::nullopt, Bytes(80), Nanos(10), path);
  EXPECT_EQ(SlowedText(graph), "copy 0 [10,30) by link\ncopy 1 [10,30) by link\n");
}

TEST(SlowedCopies, AreNoneWhereEachHasItsOwnOrThereIsEnough) {
  TaskGraph graph;
  const CapacityId uplink = graph.AddCapacity("uplink", Gigabytes(8));
  for (const char* name : {"first", "second"}) {
    const PathId path = graph.AddPath({uplink, graph.AddCapacity(name, Gigabytes(4))});
    graph.AddCopy(std::nullopt, Bytes(80), Nanos(0), path);
  }
  EXPECT_EQ(SlowedText(graph), "");
}

// Copy 0 has 2 bytes a nanosecond by its own link, as alone; copy 1 what it leaves of the uplink's
// 8, not the 12 of its link.
TEST(SlowedCopies, AreOnlyThoseThatCouldBeFaster) {
  TaskGraph graph;
  const CapacityId uplink = graph.AddCapacity("uplink", Gigabytes(8));
  const PathId slow = graph.AddPath({uplink, graph.AddCapacity("slow", Gigabytes(2))});
  const PathId fast = graph.AddPath({graph.AddCapacity("fast", Gigabytes(12)), uplink});
  graph.AddCopy(std::nullopt, Bytes(20), Nanos(0), slow);
  graph.AddCopy(std::nullopt, Bytes(120), Nanos(0), fast);
  EXPECT_EQ(SlowedText(graph), "copy 1 [0,10) by uplink\n");
}

// Of two full ones on its path it is the fuller that stops copy 0.
TEST(SlowedCopies, NameTheFullestOfTheirPath) {
  TaskGraph graph;
  const CapacityId near = graph.AddCapacity("near", Gigabytes(12));
  const CapacityId far = graph.AddCapacity("far", Gigabytes(12));
  graph.AddCopy(std::nullopt, Bytes(40), Nanos(0), graph.AddPath({near, far}));
  graph.AddCopy(std::nullopt, Bytes(80), Nanos(0), graph.AddPath({near}));
  graph.AddCopy(std::nullopt, Bytes(40), Nanos(0), graph.AddPath({far}));
  graph.AddCopy(std::nullopt, Bytes(40), Nanos(0), graph.AddPath({far}));
  EXPECT_EQ(SlowedText(graph),
            "copy 0 [0,10) by far\ncopy 1 [0,10) by near\ncopy 2 [0,10) by far\n"
            "copy 3 [0,10) by far\n");
}

TEST(SlowedCopies, HaveLessWhileTheOtherDirectionIsUsed) {
  TaskGraph graph;
  const CapacityId out = graph.AddCapacity("out", Gigabytes(8));
  const CapacityId in = graph.AddCapacity("in", Gigabytes(8));
  graph.JoinDirections(out, Gigabytes(4), in, Gigabytes(8));
  graph.AddCopy(std::nullopt, Bytes(80), Nanos(0), graph.AddPath({out}));
  graph.AddCopy(std::nullopt, Bytes(80), Nanos(0), graph.AddPath({in}));
  EXPECT_EQ(SlowedText(graph), "copy 0 [0,10) by out\n");
}

// Its bytes are through at 20; the core's work goes on alone.
TEST(SlowedCopies, AreNotSlowedByThatByWhichTheCoreIs) {
  TaskGraph graph;
  graph.ShareCores({1000});
  const PathId path = graph.AddPath({graph.AddCapacity("link", Gigabytes(4))});
  graph.AddCopy(std::nullopt, Bytes(40), Nanos(0), path, Nanos(50));
  graph.AddCopy(std::nullopt, Bytes(40), Nanos(0), path);
  EXPECT_EQ(SlowedText(graph), "copy 0 [0,20) by link\ncopy 1 [0,20) by link\n");
}

}  // namespace
}  // namespace siphon
