#ifndef SIPHON_PLANNER_PLAN_FILE_GROUP_TEXT_H_
#define SIPHON_PLANNER_PLAN_FILE_GROUP_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "planner/memory_plan.h"
#include "planner/plan_file/plan_words.h"

namespace siphon {

// A tensor group and its choice as one line of a plan file:
//   activations of layers 4 to 7, 384MiB, input 12MiB, recompute_time 8ms, d2d_swap to device 1
//   128MiB, device 2 256MiB, else recompute
// and, of some of the tensors that a layer saves:
//   activations of layer 4, 96MiB, first_tensors 5, input 12MiB, workspace 8MiB, host_swap
// Figures that are 0, and a second choice that is keep, are left out.
std::string GroupText(const PlannedGroup& planned);

// Parses what GroupText prints. Errors: InvalidArgument with the place.
absl::StatusOr<PlannedGroup> ParseGroup(const PlanWord& text);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_GROUP_TEXT_H_
