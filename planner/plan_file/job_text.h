#ifndef SIPHON_PLANNER_PLAN_FILE_JOB_TEXT_H_
#define SIPHON_PLANNER_PLAN_FILE_JOB_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "planner/plan_file/plan_words.h"
#include "planner/plan_text.h"

namespace siphon {

// The lines of the section "job", each indented.
std::string JobLines(const PlanText& plan);
// Reads one of them. Errors: InvalidArgument with the place.
absl::Status ReadJobLine(const PlanPair& pair, PlanText& plan);

// Likewise of the section "predicted".
std::string PredictedLines(const PlanPrediction& predicted);
absl::Status ReadPredictedLine(const PlanPair& pair, PlanPrediction& predicted);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_JOB_TEXT_H_
