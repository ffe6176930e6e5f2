#ifndef SIPHON_PLANNER_PLAN_DIFFERENCE_H_
#define SIPHON_PLANNER_PLAN_DIFFERENCE_H_

#include <string>
#include <vector>

#include "planner/plan_text.h"

namespace siphon {

// One value of two plans side by side, for people. "-": that plan has no such value.
struct PlanDifference {
  std::string what;    // "step time", "peak of worker 3"
  std::string before;  // with its unit
  std::string after;
  std::string change;  // "+12.5 %", "-100.0 %"; empty where nothing changes or nothing is counted
  friend bool operator==(const PlanDifference&, const PlanDifference&) = default;
};

// Two plans side by side: what was predicted, memory of each worker, bytes by placement and by
// lender (as in planner/placement_bytes.h), devices, stages. Always the same rows for plans of the
// same shape, equal ones included (DifferingRows leaves these out). The predictions are those that
// the plans carry. O(size of the plans).
std::vector<PlanDifference> ComparePlans(const PlanText& before, const PlanText& after);

std::vector<PlanDifference> DifferingRows(const std::vector<PlanDifference>& rows);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_DIFFERENCE_H_
