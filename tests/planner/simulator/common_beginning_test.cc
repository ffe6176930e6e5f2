#include "planner/simulator/common_beginning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/keyed_hash.h"

namespace siphon {
namespace {

// A task of a graph that can be changed.
struct Piece {
  enum class Kind { kWork, kTask, kCopy, kQueued };
  Kind kind = Kind::kTask;
  int64_t duration = 0;
  int64_t bytes = 0;
  int64_t core_work = 0;  // of a copy
  int link = 0;
  int after = 0;  // so many tasks before this one of the part; 0: waits for none of them
  // Of another part, the piece at most at the same place; -1: none.
  int other_part = -1;
  int other_place = 0;
};
using Pieces = std::vector<std::vector<Piece>>;  // [part]

constexpr int kLinks = 3;

// Each part has a lane for its tasks and one for its copies; all share links, cores and a queue.
TaskGraph GraphOf(const Pieces& parts, const CoreSharing& cores) {
  TaskGraph graph;
  graph.ShareCores(cores);
  const LaneId queue = graph.AddQueue();
  std::vector<PathId> paths;
  std::vector<CapacityId> links;
  for (int link = 0; link < kLinks; ++link) {
    links.push_back(graph.AddCapacity("link", BytesPerSecond(int64_t{1'000'000'000} * (link + 1))));
    std::vector<CapacityId> path = {links.front()};
    if (link > 0) path.push_back(links.back());
    paths.push_back(graph.AddPath(std::move(path)));
  }
  graph.JoinDirections(links[0], BytesPerSecond(700'000'000), links[1],
                       BytesPerSecond(900'000'000));
  std::vector<std::vector<TaskId>> tasks;
  for (const std::vector<Piece>& part : parts) {
    graph.BeginPart();
    const LaneId lane = graph.AddLane();
    const LaneId copies = graph.AddLane();
    std::vector<TaskId>& own = tasks.emplace_back();
    for (const Piece& piece : part) {
      switch (piece.kind) {
        case Piece::Kind::kWork:
          own.push_back(graph.AddWork(lane, Nanos(piece.duration)));
          break;
        case Piece::Kind::kTask:
          own.push_back(graph.AddTask(lane, Nanos(piece.duration)));
          break;
        case Piece::Kind::kCopy:
          own.push_back(graph.AddCopy(copies, Bytes(piece.bytes), Nanos(piece.duration),
                                      paths[piece.link], Nanos(piece.core_work)));
          break;
        case Piece::Kind::kQueued:
          own.push_back(graph.AddTask(queue, Nanos(piece.duration)));
          break;
      }
      const auto place = static_cast<int>(own.size()) - 1;
      if (piece.after > 0 && piece.after <= place) {
        graph.AddDependency(own.back(), own[place - piece.after]);
      }
    }
  }
  graph.BeginPart();
  for (size_t part = 0; part < parts.size(); ++part) {
    for (size_t place = 0; place < parts[part].size(); ++place) {
      const Piece& piece = parts[part][place];
      if (piece.other_part < 0 || piece.other_part == static_cast<int>(part)) continue;
      const std::vector<TaskId>& other = tasks[piece.other_part];
      if (piece.other_place >= static_cast<int>(std::min(other.size(), place))) continue;
      graph.AddDependency(tasks[part][place], other[piece.other_place]);
    }
  }
  return graph;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : dice_(seed) {}
  int Roll(int sides) { return static_cast<int>(dice_.Below(static_cast<uint64_t>(sides))); }

  Piece RollPiece(int parts, int place) {
    constexpr Piece::Kind kKinds[] = {Piece::Kind::kWork, Piece::Kind::kTask, Piece::Kind::kTask,
                                      Piece::Kind::kCopy, Piece::Kind::kCopy, Piece::Kind::kQueued};
    // Few different times, so that much happens at the same moment.
    return {.kind = kKinds[Roll(6)],
            .duration = 5 * Roll(4),
            .bytes = 10 * Roll(5),
            .core_work = 4 * Roll(4),
            .link = Roll(kLinks),
            .after = 1 + Roll(2),
            .other_part = Roll(3) == 0 ? Roll(parts) : -1,
            .other_place = Roll(place + 1)};
  }

  Pieces RollPieces(int parts, int pieces) {
    Pieces all(static_cast<size_t>(parts));
    for (std::vector<Piece>& part : all) {
      for (int place = 0; place < pieces; ++place) part.push_back(RollPiece(parts, place));
    }
    return all;
  }

  // One piece is another one, or goes, or comes.
  void Change(Pieces& all) {
    const auto parts = static_cast<int>(all.size());
    std::vector<Piece>& part = all[Roll(parts)];
    const int place = Roll(static_cast<int>(part.size()));
    switch (Roll(4)) {
      case 0:
        part.insert(part.begin() + place, RollPiece(parts, place));
        return;
      case 1:
        if (part.size() > 2) part.erase(part.begin() + place);
        return;
      default:
        part[place] = RollPiece(parts, place);
    }
  }

 private:
  KeyedGenerator dice_;
};

// Of changed graphs whose run is taken up in the middle: the share of events that were not run.
double CheckSequence(uint64_t seed, const CoreSharing& cores) {
  Dice dice(seed);
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
