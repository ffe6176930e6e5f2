#ifndef SIPHON_TESTS_PLANNER_DRAFTS_LONGEST_PATH_H_
#define SIPHON_TESTS_PLANNER_DRAFTS_LONGEST_PATH_H_

#include <vector>

#include "absl/types/span.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/units.h"

namespace siphon {

// A task graph whose tasks take times of their own, whatever others do: what it takes is its
// longest path. A run of the graph in which each of them takes as long or longer (its copies share,
// its queues are busy) begins none earlier. Queues order nothing here.
//
// For graphs of which many durations are tried: one try is two passes over tasks and dependencies.
class LongestPath {
 public:
  // The graph must outlive this. Requires: no tasks wait for each other (they can all be run).
  explicit LongestPath(const TaskGraph& graph);

  // [task]
  void Run(absl::Span<const Nanos> durations);

  Nanos length() const { return length_; }
  // [task]: when it begins at the earliest, and how long from its end to the end of all, at least.
  const std::vector<Nanos>& begin() const { return begin_; }
  const std::vector<Nanos>& tail() const { return tail_; }

 private:
  std::vector<int> order_;  // tasks, each behind all that it waits for
  // Those that wait for task t are followers_[first_follower_[t]] to those of the next task.
  std::vector<int> first_follower_;
  std::vector<int> followers_;
  std::vector<Nanos> begin_;
  std::vector<Nanos> tail_;
  Nanos length_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_DRAFTS_LONGEST_PATH_H_
