#ifndef SIPHON_PLANNER_BOUNDS_STEP_PATHS_H_
#define SIPHON_PLANNER_BOUNDS_STEP_PATHS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/bounds/facts/swap_limits.h"
#include "planner/schedule.h"
#include "planner/schedule_index.h"
#include "planner/stage_cost.h"
#include "planner/units.h"

namespace siphon {

// An action, by its place.
struct PathPlace {
  int worker = 0;
  int place = 0;
};

// From the end of one action to the begin of another, by node.
struct PathLink {
  size_t from = 0;
  size_t to = 0;
  Nanos lag;  // at least
  friend bool operator==(const PathLink&, const PathLink&) = default;
};

// A step as a graph: what each action takes at least, and what it waits for whatever a memory plan
// does: the action before it, the tensors that it needs, other workers around the optimizer step.
//
// A plan adds work and waits to this graph, and never takes an edge away: so the time between the
// begins of two actions in a simulated step is at least the longest path between them here.
class StepPaths {
 public:
  struct Costs {
    std::vector<StageCost> stages;
    // [stage]: the least that the optimizer step takes of its worker, and the least time between
    // its begin and the end of the step.
    std::vector<Nanos> steps;
    std::vector<Nanos> ends;
    TransportCosts transport;
    // [from][to]: of messages between two workers of one replica.
    std::vector<std::vector<std::vector<MessageWay>>> ways;
  };

  // Errors: as ScheduleIndex::Build; FailedPrecondition when actions wait for each other in a
  // circle.
  static absl::StatusOr<StepPaths> Build(const Schedule& schedule, const Costs& costs);

  // Of the whole step.
  Nanos step_time() const { return step_time_; }
  // Of the action, with the worker's own copies of its messages.
  Nanos Duration(PathPlace at) const { return durations_[Node(at)]; }
  // From the begin of the step to that of the action, and from there to the end of the step.
  Nanos Head(PathPlace at) const { return heads_[Node(at)]; }
  Nanos Tail(PathPlace at) const { return tails_[Node(at)]; }
  // Of the worker's own actions alone in [from, to) of its program.
  Nanos Work(int worker, int from, int to) const;
  // From the begins of the worker's actions in [from, to] to that of `to`. O(actions).
  std::vector<Nanos> PathsWithin(int worker, int from, int to) const;
  size_t nodes() const { return durations_.size(); }
  // [node]: whether the action of the node has ended, for certain, when `at` begins; and whether it
  // cannot have begun before that, `at` itself included. O(actions).
  std::vector<bool> EndedBefore(PathPlace at) const;
  std::vector<bool> NotBefore(PathPlace at) const;
  size_t NodeOf(PathPlace at) const { return Node(at); }
  // What each action with a mark waits for of the others with one, by way of none of these.
  // `marked` is [node]. O(actions).
  std::vector<PathLink> LinksAmong(const std::vector<bool>& marked) const;

 private:
  struct Edge {
    int from;
    int to;
    Nanos lag;  // between the end of `from` and the begin of `to`
  };
  struct Builder;

  size_t Node(PathPlace at) const { return static_cast<size_t>(first_[at.worker] + at.place); }
  absl::Status Order();
  void MeasureSteps();

  std::vector<Nanos> ends_;       // [node]: from its begin to the end of the step, at least
  std::vector<int> first_;        // [worker]: node of its first action; then those of meetings
  std::vector<Nanos> durations_;  // [node]
  std::vector<Edge> edges_;       // by `from`, once ordered
  std::vector<int> first_edge_;   // [node], and one behind
  std::vector<int> order_;        // nodes, each behind all that it waits for
  std::vector<Nanos> heads_;
  std::vector<Nanos> tails_;
  Nanos step_time_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_STEP_PATHS_H_
