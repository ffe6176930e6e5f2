#ifndef SIPHON_PLANNER_SIMULATOR_RUN_TASK_GRAPH_H_
#define SIPHON_PLANNER_SIMULATOR_RUN_TASK_GRAPH_H_

#include <vector>

#include "planner/simulator/fair_share.h"
#include "planner/simulator/task_graph.h"
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
  Nanos end_time;                 // of the last task
  // Tasks that never began because they wait for each other, in the order in which they were added.
  std::vector<TaskId> stuck;
  friend bool operator==(const TaskRun&, const TaskRun&) = default;
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
};

// Runs the graph by discrete events in whole nanoseconds. The same graph gives the same run.
//
// O((tasks + dependencies) log(tasks under way)), as long as copies do not share binding
// capacities; where they do, each begin and end looks at all copies that share one with it.
TaskRun RunTaskGraph(const TaskGraph& graph);
// The same, to be found in `space` until the next run there.
const TaskRun& RunTaskGraph(const TaskGraph& graph, TaskRunSpace& space);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_RUN_TASK_GRAPH_H_
