#ifndef SIPHON_PLANNER_SIMULATOR_RUN_TASK_GRAPH_H_
#define SIPHON_PLANNER_SIMULATOR_RUN_TASK_GRAPH_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/simulator/engine/fair_share.h"
#include "planner/simulator/engine/shared_cores.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/units.h"

namespace siphon {

enum class TaskMoment { kBegin, kEnd };

struct TaskEvent {
  TaskId task;
  TaskMoment moment = TaskMoment::kBegin;
  friend bool operator==(const TaskEvent&, const TaskEvent&) = default;
};

// When everything happened.
struct TaskRun {
  std::vector<Nanos> begin;       // [task]; -1 for a task that never began
  std::vector<Nanos> end;         // [task]; -1 likewise
  std::vector<TaskEvent> events;  // in the order of time; at one moment, ends before begins
  std::vector<CapacityUse> uses;  // [capacity]
  // In the order of time: what slows copies that share with others.
  std::vector<LimitChange> limits;
  Nanos end_time;  // of the last task
  // Tasks that never began because they wait for each other, in the order in which they were added.
  std::vector<TaskId> stuck;
  friend bool operator==(const TaskRun&, const TaskRun&) = default;
};

// A run in the middle, behind all that happens at a moment.
struct RunMark {
  // A task's own time will be over, or a forecast comes true.
  struct Due {
    Nanos time;
    int task = 0;
    uint32_t version = 0;  // of a forecast; 0: the task's own time is over
    friend auto operator<=>(const Due&, const Due&) = default;
  };
  // A queue that is busy.
  struct Queue {
    int running = 0;           // task
    std::vector<int> waiting;  // those that became ready first come first
  };

  size_t events = 0;  // that have happened
  size_t limits = 0;  // so many of TaskRun::limits are before
  Nanos now;
  std::vector<Due> due;
  FairShare::State copies;
  SharedCores::State cores;
  std::vector<Queue> queues;
};

// A run, and memory for the next one.
struct TaskRunSpace {
  TaskRun run;
  // For each task, those that wait for it, in one array: followers of task t are
  // [first_follower[t], first_follower[t + 1]).
  std::vector<int> first_follower;
  std::vector<int> followers;
  std::vector<int> waiting_for;   // [task]: of how many others
  std::vector<int> next_in_lane;  // [task]; -1: none
  // Some of them, in the order of time, for runs that begin as this one does.
  std::vector<RunMark> marks;
  size_t repeated = 0;  // events that were taken from the run of another graph
};

// How a run begins: as one of another graph did.
struct RunBeginning {
  const TaskRunSpace* base = nullptr;
  std::vector<int> task_of;  // [task of that graph]: the same task here; -1: none
  size_t events = 0;         // so many of its first events are those of this run, too
};

enum class RunMarks { kNone, kKept };

// Runs the graph by discrete events in whole nanoseconds. The same graph gives the same run.
//
// O((tasks + dependencies) log(tasks under way)), as long as copies do not share binding
// capacities; where they do, each begin and end looks at all copies that share one with it.
TaskRun RunTaskGraph(const TaskGraph& graph);
// The same, to be found in `space` until the next run there.
const TaskRun& RunTaskGraph(const TaskGraph& graph, TaskRunSpace& space,
                            RunMarks marks = RunMarks::kNone);
// The same run as those, of which only what comes behind the last mark of the beginning is run.
// Requires: `beginning` is that of the graph (FindCommonBeginning), its base is not `space`.
const TaskRun& RunTaskGraph(const TaskGraph& graph, const RunBeginning& beginning,
                            TaskRunSpace& space);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_RUN_TASK_GRAPH_H_
