#ifndef SIPHON_PLANNER_PLAN_FILE_CHECK_PLAN_H_
#define SIPHON_PLANNER_PLAN_FILE_CHECK_PLAN_H_

#include <vector>

#include "absl/status/status.h"
#include "planner/plan_file/plan_words.h"
#include "planner/plan_text.h"

namespace siphon {

// Where the parts of one stage stand.
struct StagePlaces {
  PlanWord header;
  PlanWord worker;               // the number
  std::vector<PlanWord> groups;  // what is said of each
};

// Where the parts of a plan file stand. Line 0: there is none.
struct PlanPlaces {
  PlanWord job;
  PlanWord predicted;
  PlanWord topology;
  PlanWord training;
  PlanWord evaluation;
  std::vector<StagePlaces> stages;
  std::vector<PlanWord> device_of_worker;  // [worker]: the value
  PlanWord last_worker;                    // header of the last section of a worker
};

// Checks the invariant of PlanText. Errors: InvalidArgument "line:column: problem".
absl::Status CheckPlan(const PlanText& plan, const PlanPlaces& places);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_CHECK_PLAN_H_
