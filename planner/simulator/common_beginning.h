#ifndef SIPHON_PLANNER_SIMULATOR_COMMON_BEGINNING_H_
#define SIPHON_PLANNER_SIMULATOR_COMMON_BEGINNING_H_

#include <cstddef>

#include "planner/simulator/run_task_graph.h"
#include "planner/simulator/task_graph.h"

namespace siphon {

// How many tasks both graphs have in common, each part from its begin on: how much alike they are.
size_t CommonTasks(const TaskGraph& base, const TaskGraph& graph);

// Until when the run of `graph` is that of `base`, whose run is given: until the first task is
// ready that only one of them has, or that waits for other tasks in one than in the other. All
// events before that are the same, in the same order. Graphs of which that cannot be told, or that
// differ before the first mark of the run, have nothing in common (0 events).
//
// Requires: the run of `base` is complete, and outlives the answer. O(tasks + dependencies).
RunBeginning FindCommonBeginning(const TaskGraph& base, const TaskRunSpace& run,
                                 const TaskGraph& graph);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_COMMON_BEGINNING_H_
