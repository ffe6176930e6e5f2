#ifndef SIPHON_PLANNER_CHECK_PLAN_H_
#define SIPHON_PLANNER_CHECK_PLAN_H_

#include <vector>

#include "absl/status/status.h"
#include "planner/plan_text.h"
#include "planner/plan_words.h"

namespace siphon {

// Where the parts of a plan file stand.
struct PlanPlaces {
  PlanWord job;
  PlanWord training;
  PlanWord evaluation;                    // line 0: there is none
  std::vector<PlanWord> stages;           // headers
  std::vector<PlanWord> worker_of_stage;  // the numbers
  PlanWord last_worker;                   // header of the last section of a worker
};

// Checks the invariant of PlanText. Errors: InvalidArgument "line:column: problem".
absl::Status CheckPlan(const PlanText& plan, const PlanPlaces& places);

}  // namespace siphon

#endif  // SIPHON_PLANNER_CHECK_PLAN_H_
