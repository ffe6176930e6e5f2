#ifndef SIPHON_PIPELINE_SCHEDULES_BUILDERS_H_
#define SIPHON_PIPELINE_SCHEDULES_BUILDERS_H_

#include "absl/status/statusor.h"
#include "pipeline/schedules/placement.h"
#include "planner/schedule.h"

namespace siphon {

// One builder for each row of the table. BuildSchedule has checked that all of the shape is
// positive, and that options are given only to a schedule that uses them.
#define SIPHON_SCHEDULE(name, builder, chunks, update, options, summary) \
  absl::StatusOr<Schedule> builder(const ScheduleShape& shape);
#include "pipeline/schedules/schedules.def"
#undef SIPHON_SCHEDULE

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_BUILDERS_H_
