#include "planner/simulator/engine/common_beginning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/planner/simulator/random_graph.h"

namespace siphon {
namespace {

// Of changed graphs whose run is taken up in the middle: the share of events that were not run.
double CheckSequence(uint64_t seed, const CoreSharing& cores) {
  GraphDice dice(seed);
  constexpr int kPieces = 60;
  Pieces pieces = dice.RollPieces(2 + dice.Roll(3), kPieces);
  TaskGraph base = GraphOf(pieces, cores);
  TaskRunSpace run;
  RunTaskGraph(base, run, RunMarks::kKept);
  double repeated = 0;
  double all = 0;
  for (int change = 0; change < 20; ++change) {
    Pieces changed = pieces;
    for (int changes = 1 + dice.Roll(2); changes > 0; --changes) dice.Change(changed);
    TaskGraph graph = GraphOf(changed, cores);
    const TaskRun whole = RunTaskGraph(graph);
    EXPECT_TRUE(whole.stuck.empty());
    TaskRunSpace space;
    const TaskRun& continued =
        RunTaskGraph(graph, FindCommonBeginning(base, run, graph, CommonTasks(base, graph)), space);
    EXPECT_EQ(continued, whole) << "seed " << seed << " change " << change;
    repeated += static_cast<double>(space.repeated);
    all += static_cast<double>(whole.events.size());
    if (dice.Roll(3) == 0) continue;
    // The run that was taken up is one to be taken up itself.
    pieces = changed;
    base = std::move(graph);
    run = std::move(space);
  }
  return repeated / all;
}

TEST(CommonBeginning, ARunThatIsTakenUpIsTheWholeRun) {
  double least = 1;
  double most = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const double share = CheckSequence(seed, {});
    least = std::min(least, share);
    most = std::max(most, share);
  }
  EXPECT_GT(least, 0.1) << "changes in the middle leave much as it was";
  EXPECT_LT(most, 0.9);
}

TEST(CommonBeginning, OnSharedCoresToo) {
  for (uint64_t seed = 101; seed <= 130; ++seed) CheckSequence(seed, {1000, 1900});
}

// Part 0: 0 [0,10) 1 [10,20) 2 [20,30); part 1: 3 [0,15), 4 [20,25) behind 1.
Pieces TwoParts() {
  const auto task = [](int64_t duration, int other_part, int other_place) {
    return Piece{.duration = duration, .other_part = other_part, .other_place = other_place};
  };
  return {{task(10, -1, 0), task(10, -1, 0), task(10, -1, 0)},
          {task(15, -1, 0), task(0, -1, 0), task(5, 0, 1)}};
}

size_t CommonEvents(const Pieces& changed) {
  const TaskGraph base = GraphOf(TwoParts(), {});
  const TaskGraph graph = GraphOf(changed, {});
  TaskRunSpace run;
  RunTaskGraph(base, run, RunMarks::kKept);
  return FindCommonBeginning(base, run, graph, CommonTasks(base, graph)).events;
}

// Events: begin 0, begin 3; at 10 end 0, begin 1; at 15 end 3, begin 4, end 4; at 20 end 1, ...
TEST(CommonBeginning, LastsUntilWhatWasChangedCanBegin) {
  EXPECT_EQ(CommonEvents(TwoParts()), 12u) << "all of it";
  Pieces changed = TwoParts();
  changed[0][2].duration = 7;
  EXPECT_EQ(CommonEvents(changed), 7u) << "until the end of what comes before it";
  changed = TwoParts();
  changed[0].push_back(changed[0].back());
  EXPECT_GT(CommonEvents(changed), 7u) << "what is new comes last";
  changed = TwoParts();
  changed[1][2].other_place = 0;
  EXPECT_EQ(CommonEvents(changed), 6u) << "it waits for less than before";
  changed = TwoParts();
  changed[0][0].duration = 9;
  EXPECT_EQ(CommonEvents(changed), 0u);
}

TEST(CommonBeginning, OtherRatesHaveNothingInCommon) {
  const TaskGraph base = GraphOf(TwoParts(), {});
  const TaskGraph graph = GraphOf(TwoParts(), {1000});
  TaskRunSpace run;
  RunTaskGraph(base, run, RunMarks::kKept);
  EXPECT_EQ(FindCommonBeginning(base, run, graph, CommonTasks(base, graph)).events, 0u);
}

}  // namespace
}  // namespace siphon
