#ifndef SIPHON_PLANNER_CHECK_RESIDENCY_H_
#define SIPHON_PLANNER_CHECK_RESIDENCY_H_

#include <vector>

#include "absl/status/status.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

// Follows the activations of every (stage, microbatch) through its worker's program: made by F,
// used by B, I and W, moved by SWAP_OUT .. SWAP_OUT_END and SWAP_IN .. SWAP_IN_END, or given up by
// DROP and made anew by RECOMPUTE. Actions on tensor groups: as CheckGroupResidency, which this
// calls.
//
// Errors: FailedPrecondition with the grid, "<-- here" behind the action that finds them in a state
// in which it cannot use them, or behind the end of a program that leaves a copy under way.
absl::Status CheckResidency(const Schedule& schedule, const MemoryPlan& plan = {});

// `limits[w]` is the largest number of (stage, microbatch) activations that worker w may keep at
// once (see PeakLiveActivations). Errors: FailedPrecondition with the grid at the forward that goes
// beyond.
absl::Status CheckLiveActivations(const Schedule& schedule, const std::vector<int>& limits);

}  // namespace siphon

#endif  // SIPHON_PLANNER_CHECK_RESIDENCY_H_
