#ifndef SIPHON_PLANNER_SIMULATOR_TASK_GRAPH_H_
#define SIPHON_PLANNER_SIMULATOR_TASK_GRAPH_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/ids.h"
#include "planner/simulator/engine/shared_cores.h"
#include "planner/units.h"

namespace siphon {

using TaskId = Id<struct TaskTag>;          // in the order in which tasks were added
using LaneId = Id<struct LaneTag>;          // takes one task at a time
using CapacityId = Id<struct CapacityTag>;  // shared by copies
using PathId = Id<struct PathTag>;          // the capacities that a copy passes

// What copies share: a link, an uplink, all that leaves a device.
struct SharedCapacity {
  std::string name;
  BytesPerSecond rate;       // while the other direction is idle; 0: no limit
  BytesPerSecond rate_both;  // while the other direction is used as well; 0: the same
  std::optional<CapacityId> other_direction;
};

// A task that takes its time, or a copy: `duration` (the latency) first, then `bytes` through all
// capacities of the path at once.
struct Task {
  std::optional<LaneId> lane;
  std::optional<PathId> path;  // of a copy
  Nanos duration;
  Bytes bytes;
  bool on_core = false;  // `duration` is work of a core, which takes longer when cores are shared
  Nanos core_work;       // of a copy: of a core, beside its bytes; it ends when both are done
};

// What happens in a step, as a general graph: tasks, what they wait for, what they occupy.
//
// A lane runs its tasks in the order in which they were added, a queue in the order in which they
// become ready. A task without a lane starts as soon
// as all that it waits for has ended. Copies through one capacity share it by max-min fairness.
class TaskGraph {
 public:
  // As new, but with the memory that it has.
  void Clear();

  LaneId AddLane();
  LaneId AddQueue();
  CapacityId AddCapacity(std::string name, BytesPerSecond rate);
  // Declares two capacities to be the two directions of one wire, with the rates that are left when
  // both are used. Requires: neither is declared so yet.
  void JoinDirections(CapacityId a, BytesPerSecond a_both, CapacityId b, BytesPerSecond b_both);
  PathId AddPath(std::vector<CapacityId> capacities);

  // What is added from here on is another part of the graph than what was added before. Two graphs
  // are compared part by part (common_beginning.h).
  void BeginPart();

  TaskId AddTask(std::optional<LaneId> lane, Nanos duration);
  // A task of so much work, which it gets done in that time alone on a core.
  TaskId AddWork(LaneId lane, Nanos work);
  // `core_work`: what a core has to do for it, which gets it done in that time alone.
  TaskId AddCopy(std::optional<LaneId> lane, Bytes bytes, Nanos latency, PathId path,
                 Nanos core_work = Nanos(0));
  // From here on a copy takes this path. Requires: it is a copy.
  void Reroute(TaskId copy, PathId path, Nanos latency);
  // What tasks of AddWork share, and copies with work. Requires: entries are positive.
  void ShareCores(CoreSharing cores) { cores_ = std::move(cores); }
  // `task` starts only after `before` has ended.
  void AddDependency(TaskId task, TaskId before) { dependencies_.emplace_back(task, before); }

  const std::vector<Task>& tasks() const { return tasks_; }
  // (task, what it waits for), lanes' own order not included.
  const std::vector<std::pair<TaskId, TaskId>>& dependencies() const { return dependencies_; }
  const std::vector<SharedCapacity>& capacities() const { return capacities_; }
  const std::vector<std::vector<CapacityId>>& paths() const { return paths_; }
  // How many tasks and dependencies stand before a part.
  struct PartBegin {
    size_t tasks = 0;
    size_t dependencies = 0;
  };
  const std::vector<PartBegin>& parts() const { return parts_; }  // at least one
  int lanes() const { return static_cast<int>(is_queue_.size()); }
  bool IsQueue(LaneId lane) const { return is_queue_[lane.value]; }
  const CoreSharing& cores() const { return cores_; }

 private:
  std::vector<bool> is_queue_;  // [lane]
  CoreSharing cores_;
  std::vector<Task> tasks_;
  std::vector<std::pair<TaskId, TaskId>> dependencies_;
  std::vector<SharedCapacity> capacities_;
  std::vector<std::vector<CapacityId>> paths_;
  std::vector<PartBegin> parts_ = {{}};
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_TASK_GRAPH_H_
