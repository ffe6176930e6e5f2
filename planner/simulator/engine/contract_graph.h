#ifndef SIPHON_PLANNER_SIMULATOR_CONTRACT_GRAPH_H_
#define SIPHON_PLANNER_SIMULATOR_CONTRACT_GRAPH_H_

#include "planner/simulator/engine/task_graph.h"

namespace siphon {

// A smaller graph that is over at the same moment, whichever paths the copies of both take and
// however fast: for graphs that are run again and again. Copies and what is in queues stay, in
// their order and lanes. Of all else the order of lanes has become dependencies; tasks of which one
// only follows the other are one, and those without a duration are left out where that makes
// dependencies no more. Where a queue takes what is ready first, none of these is, so that what
// happens at one moment still happens in the same order. A graph whose tasks share cores stays as
// it is.
TaskGraph ContractGraph(const TaskGraph& graph);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_CONTRACT_GRAPH_H_
