#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_TABLE3_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_TABLE3_H_

#include <string>
#include <vector>

#include "planner/memory_plan.h"
#include "planner/strategies/mpress/mpress_rule.h"

namespace siphon {

// A tensor of MPress's Table III: sizes and times as printed, and what section IV.D says was chosen
// for it.
struct MpressTensor {
  std::string model;  // "Bert", "GPT"
  std::string name;   // "t1"
  double megabytes = 0;
  TensorTimes times;  // of a D2D swap over four links
  Placement choice = Placement::kKeep;
};
const std::vector<MpressTensor>& MpressTable3();

// The table with the overhead of each way and our choice (MpressChoice) beside the paper's.
std::string MpressTable3Text();

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_TABLE3_H_
