#ifndef SIPHON_PLANNER_SIMULATOR_SLOWED_COPIES_H_
#define SIPHON_PLANNER_SIMULATOR_SLOWED_COPIES_H_

#include <vector>

#include "planner/simulator/engine/run_task_graph.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/units.h"

namespace siphon {

// In [begin, end) a copy has less than its path would give it alone: of what its path passes, `by`
// is full, and no other copy gets more of it. Alone there it can be full only as its other
// direction is used as well.
struct SlowedCopy {
  TaskId copy;
  CapacityId by;
  Nanos begin;
  Nanos end;
  friend bool operator==(const SlowedCopy&, const SlowedCopy&) = default;
};

// All of a finished run, in the order of their ends.
std::vector<SlowedCopy> FindSlowedCopies(const TaskRun& run);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_SLOWED_COPIES_H_
