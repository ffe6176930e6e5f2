#ifndef SIPHON_PLANNER_SIMULATOR_COMMON_BEGINNING_H_
#define SIPHON_PLANNER_SIMULATOR_COMMON_BEGINNING_H_

#include <cstddef>
#include <vector>

#include "planner/simulator/engine/run_task_graph.h"
#include "planner/simulator/engine/task_graph.h"

namespace siphon {

// [part]: how many tasks both graphs have in common, from the part's begin on: how much alike they
// are. Empty where they have not as many parts.
std::vector<size_t> CommonTasks(const TaskGraph& base, const TaskGraph& graph);

// Until when the run of `graph` is that of `base`, whose run is given: until the first task is
// ready that only one of them has, or that waits for other tasks in one than in the other. All
// events before that are the same, in the same order. Graphs of which that cannot be told, or that
// differ before the first mark of the run, have nothing in common (0 events).
//
// Requires: the run of `base` is complete, and outlives the answer; `common` are the CommonTasks of
// both. O(tasks + dependencies).
RunBeginning FindCommonBeginning(const TaskGraph& base, const TaskRunSpace& run,
                                 const TaskGraph& graph, const std::vector<size_t>& common);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_COMMON_BEGINNING_H_
