#ifndef SIPHON_PLANNER_SIMULATOR_HEAD_TAIL_JOBS_H_
#define SIPHON_PLANNER_SIMULATOR_HEAD_TAIL_JOBS_H_

#include <vector>

#include "planner/units.h"

namespace siphon {

// Work of a machine that does so much a second, of one job or of several at once.
struct HeadTailJob {
  Nanos head;  // it does not begin before
  Nanos work;  // how long it takes alone
  Nanos tail;  // it is so long before the end of all
};

// Before which all cannot have ended, tails included, however the machine shares itself: the end of
// Jackson's preemptive schedule, longest tail first, that is the greatest, over all sets of jobs,
// of the least head, all work and the least tail (Carlier, "The one-machine sequencing problem",
// 1982). 0 without jobs. O(n log n).
Nanos LeastEnd(std::vector<HeadTailJob> jobs);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_HEAD_TAIL_JOBS_H_
