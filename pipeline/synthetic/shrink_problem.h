#ifndef SIPHON_PIPELINE_SYNTHETIC_SHRINK_PROBLEM_H_
#define SIPHON_PIPELINE_SYNTHETIC_SHRINK_PROBLEM_H_

#include <cstdint>

#include "planner/drafts/planning_problem.h"

namespace siphon {

// How much smaller and slower a server is rebuilt.
struct MiniatureScale {
  int64_t bytes = 4096;  // every size is divided by it
  int64_t time = 1;      // every time is multiplied by it, and then divided by the next
  int64_t time_parts = 1;
};

// The problem in small: every size, time, rate and latency of profile, topology, transport and
// capacities, so that a copy takes the same part of a layer's time, and a tensor the same part of a
// memory. Sizes of tensors are rounded up, memories down, rates down to whole bytes per second (at
// least 1), so the proportions hold to about a millionth as long as sizes stay above a megabyte.
//
// Pure. Requires: the scale's numbers are positive. What workers share of processors (`cores`) is
// left out: synthetic work needs none.
PlanningProblem ShrinkProblem(PlanningProblem problem, const MiniatureScale& scale);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_SHRINK_PROBLEM_H_
