#ifndef SIPHON_LAUNCH_COMMANDS_WEIGHT_OFFLOAD_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_WEIGHT_OFFLOAD_REPORT_H_

#include <string>
#include <vector>

#include "planner/weight_offload/published_weight_offload.h"

namespace siphon {

struct ComparedWeightOffloadRow {
  WeightOffloadRow published;
  WeightOffloadTimes times;  // ours
};

// Table 1 of the weight offloading paper, ours beside it, with what is assumed.
std::string WeightOffloadTableText(const std::vector<ComparedWeightOffloadRow>& rows);
std::string WeightOffloadTableJson(const std::vector<ComparedWeightOffloadRow>& rows);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_WEIGHT_OFFLOAD_REPORT_H_
