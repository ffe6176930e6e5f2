#ifndef SIPHON_PLANNER_CHECK_STEP_END_H_
#define SIPHON_PLANNER_CHECK_STEP_END_H_

#include "absl/status/status.h"
#include "planner/schedule.h"
#include "planner/schedule_index.h"

namespace siphon {

// Checks where weights change:
// - REDUCE_GRAD stands behind its stage's last gradient, REDUCE_NORM behind all else of its worker
//   but STEPs, and is named after the worker's first stage; with a REDUCE_NORM on one worker, all
//   have theirs, and every stage has a STEP or UPDATEs;
// - STEP stands behind all microbatches of its stage (just in time or at the end), and behind its
//   REDUCE_GRAD where there is one;
// - UPDATEs of a stage ascend, each behind the backward that it names, and the last one behind the
//   stage's last backward; a stage has no STEP beside them.
//
// Errors: FailedPrecondition with the grid.
absl::Status CheckStepEnd(const Schedule& schedule, const ScheduleIndex& index);

}  // namespace siphon

#endif  // SIPHON_PLANNER_CHECK_STEP_END_H_
