#ifndef SIPHON_PIPELINE_SCHEDULES_PLACEMENT_H_
#define SIPHON_PIPELINE_SCHEDULES_PLACEMENT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/schedule.h"

namespace siphon {

// Which worker holds which stage. Each returns a schedule with its stages placed and empty
// programs.

// Stage s on worker s. Errors: InvalidArgument when the shape asks for more chunks.
absl::StatusOr<Schedule> OneStageAWorker(const ScheduleShape& shape, absl::string_view name);

// Stage s on worker s mod P: chunk c of worker w is stage c P + w.
Schedule PlaceInLoop(const ScheduleShape& shape);

// Down and up again: worker w holds stages w and 2 P - 1 - w, so the last worker holds the two in
// the middle and the first holds both ends of the model.
// Errors: InvalidArgument unless the shape asks for exactly 2 chunks.
absl::StatusOr<Schedule> PlaceInV(const ScheduleShape& shape, absl::string_view name);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_PLACEMENT_H_
