#ifndef SIPHON_PLANNER_SIMULATOR_GRAPH_CLOCK_H_
#define SIPHON_PLANNER_SIMULATOR_GRAPH_CLOCK_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "planner/simulator/engine/fair_share.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/units.h"

namespace siphon {

// When a graph's run is over, and nothing else of it: for graphs that are run again and again,
// while their copies take other paths (TaskGraph::Reroute). What is the same in all runs is looked
// up once.
//
// Invariant: what it answers is the end of RunTaskGraph.
class GraphClock {
 public:
  // The same graph is given to each run, or one that differs only in the ways of its copies.
  // Requires: tasks do not share cores, and do not wait for each other (they can all be run).
  explicit GraphClock(const TaskGraph& graph);

  // None where it is later than `most`, which is said as soon as it is certain. `tails`: [task],
  // from its begin to the end of all at least. O(tasks * tasks under way), where RunTaskGraph takes
  // a logarithm of these: meant for few of them at once.
  std::optional<Nanos> EndWithin(const TaskGraph& graph, Nanos most, absl::Span<const Nanos> tails);

 private:
  static constexpr int kNone = -1;

  // Something ends at `time`: a task's own time, or a copy's bytes are through.
  struct Due {
    Nanos time;
    int task = 0;
  };
  struct Queue {
    int running = kNone;
    std::vector<int> waiting;  // those from `next` on, in the order in which they became ready
    size_t next = 0;
  };
  // Of one run.
  struct Run;

  void BeginReady(Run& run);
  void EndOwnTime(int task, Run& run);
  void EndMoving(int task, Run& run);
  void End(int task, Run& run);
  void Ready(int task);
  bool Advance(Run& run);
  void AddDue(const Due& due);

  FairShare shares_;
  std::vector<int> first_follower_;  // [task], and behind the last
  std::vector<int> followers_;
  std::vector<int> waits_;     // [task]: for how many others, at first
  std::vector<int> queue_of_;  // [task]; kNone: in none
  // What a run uses:
  std::vector<int> waiting_for_;
  std::vector<Queue> queues_;
  std::vector<int> ready_;
  std::vector<int> due_now_;  // those that begin and take no time
  std::vector<Due> due_;      // own times, those from next_due_ on by time
  size_t next_due_ = 0;
  std::vector<Due> moving_;
  std::vector<int> place_;  // [task]: in moving_
  std::vector<int> ended_;  // at one moment
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_GRAPH_CLOCK_H_
