#ifndef SIPHON_PLANNER_SCHEDULE_H_
#define SIPHON_PLANNER_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/action.h"
#include "planner/ids.h"

namespace siphon {

// What a schedule builder is asked for. Stages = workers * chunks.
struct ScheduleShape {
  int workers = 1;
  int chunks = 1;  // stages a worker
  int microbatches = 1;
};

// programs[w] is what worker w does, strictly in order; worker_of_stage[s] says who holds stage s.
struct Schedule {
  int microbatches = 0;
  std::vector<WorkerId> worker_of_stage;
  std::vector<std::vector<Action>> programs;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

int StageCount(const Schedule& schedule);
// The stages of a worker, ascending.
std::vector<StageId> StagesOf(const Schedule& schedule, WorkerId worker);

// One line a worker, actions separated by blanks: "0F0 0F1 0B0\n1F0 ...\n".
std::string ToString(const Schedule& schedule);
// Parses what ToString prints. The worker of a stage is the line that it stands in; a stage on two
// lines is an error.
absl::StatusOr<Schedule> ParseSchedule(absl::string_view text);

// Largest number of microbatches between their F and their B (or W) at once, per worker, counted
// over (stage, microbatch) pairs, both ends included. gpipe: m; 1f1b: min(P - s, m).
std::vector<int> PeakLiveActivations(const Schedule& schedule);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SCHEDULE_H_
