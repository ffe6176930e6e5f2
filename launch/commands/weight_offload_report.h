#ifndef SIPHON_LAUNCH_COMMANDS_WEIGHT_OFFLOAD_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_WEIGHT_OFFLOAD_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "planner/weight_offload/published_weight_offload.h"

namespace siphon {

struct ComparedWeightOffloadRow {
  WeightOffloadRow published;
  WeightOffloadTimes times;  // ours
  // The step that `auto` plans for the row as a OneDeviceProblem; nothing: no plan of it fits.
  std::optional<Nanos> automatic;
};

// Table 1 of the weight offloading paper, ours beside it, with what is assumed.
std::string WeightOffloadTableText(const std::vector<ComparedWeightOffloadRow>& rows);
std::string WeightOffloadTableJson(const std::vector<ComparedWeightOffloadRow>& rows);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_WEIGHT_OFFLOAD_REPORT_H_
