#ifndef SIPHON_PLANNER_MARKED_GRID_H_
#define SIPHON_PLANNER_MARKED_GRID_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/schedule.h"
#include "planner/schedule_index.h"

namespace siphon {

// The programs, one line a worker ("worker 1: 1F0 1B0 <-- here 1F1"), with the cell at `bad`
// marked. A large schedule is shown around that cell only, with "..." for what is left out.
std::string MarkedGrid(const Schedule& schedule, ActionPosition bad);

// FailedPrecondition: the sentence, then the grid on lines of its own.
absl::Status ScheduleError(const Schedule& schedule, ActionPosition bad,
                           absl::string_view sentence);

// The sentence of such an error, or of any other one.
std::string SentenceOf(const absl::Status& status);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MARKED_GRID_H_
