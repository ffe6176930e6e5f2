#ifndef SIPHON_TESTS_PLANNER_SIMULATOR_RANDOM_GRAPH_H_
#define SIPHON_TESTS_PLANNER_SIMULATOR_RANDOM_GRAPH_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/keyed_hash.h"
#include "planner/simulator/engine/task_graph.h"

namespace siphon {

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

inline constexpr int kLinks = 3;

// Each part has a lane for its tasks and one for its copies; all share links, cores and a queue.
inline TaskGraph GraphOf(const Pieces& parts, const CoreSharing& cores) {
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

// Makes them, and changes them as a search does.
class GraphDice {
 public:
  explicit GraphDice(uint64_t seed) : dice_(seed) {}
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

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_SIMULATOR_RANDOM_GRAPH_H_
