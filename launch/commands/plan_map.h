#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_MAP_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_MAP_H_

#include <string>

#include "absl/strings/string_view.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// "step_time", "swap_time", as in topology.map_score of a job.
absl::string_view MapScoreName(MappingScore score);

// Whether the map is proven best for the plan that it was searched for, or by how much another one
// could be better at most, and how many maps were looked at.
std::string MapText(const MapProof& map);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_MAP_H_
