#ifndef SIPHON_PIPELINE_SCHEDULES_BUILD_SCHEDULE_H_
#define SIPHON_PIPELINE_SCHEDULES_BUILD_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/schedule.h"

namespace siphon {

// One row of the registry, schedules.def. To add a schedule: one file with the builder, one line
// there.
struct ScheduleEntry {
  std::string name;     // "1f1b"
  std::string summary;  // one line for --help
  absl::StatusOr<Schedule> (*build)(const ScheduleShape& shape);
};

const std::vector<ScheduleEntry>& ScheduleRegistry();

// Compute actions only. Errors: NotFound for an unknown name (known ones listed); InvalidArgument
// for a shape that the schedule does not take (says which it takes).
absl::StatusOr<Schedule> BuildSchedule(absl::string_view name, const ScheduleShape& shape);

// Every microbatch once forward through all stages, placed as in `like`: for validation.
Schedule BuildForwardOnly(const Schedule& like, int microbatches);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_BUILD_SCHEDULE_H_
