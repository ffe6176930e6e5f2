#ifndef SIPHON_PIPELINE_SCHEDULES_BUILDERS_H_
#define SIPHON_PIPELINE_SCHEDULES_BUILDERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/schedule.h"

namespace siphon {

// One builder for each row of the table. BuildSchedule has checked that all of the shape is
// positive.
#define SIPHON_SCHEDULE(name, builder, chunks, update, summary) \
  absl::StatusOr<Schedule> builder(const ScheduleShape& shape);
#include "pipeline/schedules/schedules.def"
#undef SIPHON_SCHEDULE

// A schedule with stage s on worker s and empty programs, for builders of one stage a worker.
// Errors: InvalidArgument when the shape asks for more chunks.
absl::StatusOr<Schedule> OneStageAWorker(const ScheduleShape& shape, absl::string_view name);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_BUILDERS_H_
