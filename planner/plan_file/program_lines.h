#ifndef SIPHON_PLANNER_PLAN_FILE_PROGRAM_LINES_H_
#define SIPHON_PLANNER_PLAN_FILE_PROGRAM_LINES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan_file/plan_words.h"
#include "planner/schedule.h"

namespace siphon {

// A section of programs ("training", "evaluation"), line by line, for ParseSchedule.
class ProgramLines {
 public:
  // "worker 0: 0F0 0B0". Errors: InvalidArgument with the place when it is another worker's turn.
  absl::Status Add(const PlanLine& line, const PlanPair& pair);

  // Errors: InvalidArgument with the place in the file, or that of `header`.
  absl::StatusOr<Schedule> Parse(const PlanWord& header) const;

 private:
  std::string text_;        // everything at its line and column of the file
  std::vector<int> lines_;  // of each program
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_PROGRAM_LINES_H_
