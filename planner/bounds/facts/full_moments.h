#ifndef SIPHON_PLANNER_BOUNDS_FULL_MOMENTS_H_
#define SIPHON_PLANNER_BOUNDS_FULL_MOMENTS_H_

#include <vector>

#include "planner/bounds/facts/memory_windows.h"
#include "planner/bounds/facts/step_paths.h"
#include "planner/schedule.h"
#include "planner/units.h"

namespace siphon {

// What is live on a worker, whatever the plan, when an action of another one begins: microbatches
// whose F has ended for certain, and whose B or I cannot have begun before; and what others keep
// for their W.
struct LiveThen {
  int worker = 0;
  std::vector<int> live;  // [stage of the worker]: microbatches
  Bytes stash;            // that they saved
  // Of microbatches whose I has ended for certain, and whose W cannot have begun before: cannot be
  // away.
  Bytes queued;
  Nanos head;  // from the begin of the step to the end of the first of their Fs, at least
  // From that begin to the end of the step: the worker's own actions up to the last of their
  // backwards, one after the other, and what must follow it.
  Nanos rest;
  Nanos tail;  // from the end of the last of their backwards to the end of the step, at least
  friend bool operator==(const LiveThen&, const LiveThen&) = default;
};

// The begin of a window's backward, as all other workers see it.
struct FullMoment {
  int worker = 0;
  int window = 0;
  std::vector<LiveThen> others;  // that have something live
  friend bool operator==(const FullMoment&, const FullMoment&) = default;
};

// Of each worker's windows the one at which most is live on all workers together. By the order of
// actions alone, so whatever the capacities, but that a worker may have no windows. Empty for
// replicas, and for schedules of too many actions. O(windows * actions).
std::vector<FullMoment> FullMomentsOf(const Schedule& schedule, const StepPaths& paths,
                                      const std::vector<WorkerMemory>& memory);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_FULL_MOMENTS_H_
