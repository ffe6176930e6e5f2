#ifndef SIPHON_TESTS_FUZZ_CHECK_SCHEDULE_H_
#define SIPHON_TESTS_FUZZ_CHECK_SCHEDULE_H_

#include "planner/lower_schedule.h"
#include "planner/schedule.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {

// What holds of every schedule that was read from a text, sensible or not: the validator says yes
// or no, and a valid one stays valid when messages are inserted and a step is put at its end.
inline void CheckSchedule(const Schedule& schedule) {
  PeakLiveActivations(schedule);
  PeakWeightVersions(schedule);
  MergeBackward(schedule);
  if (!ValidateSchedule(schedule, SchedulePurpose::kTraining).ok()) return;
  const absl::StatusOr<Schedule> lowered = InsertCommunication(schedule);
  if (!lowered.ok()) return;  // it had messages, or the end of a step, already
  absl::Status status = ValidateSchedule(*lowered, SchedulePurpose::kTraining);
  SIPHON_CHECK(status.ok(), "a valid schedule stays valid when messages are inserted");
  status = ValidateSchedule(AppendOptimizerStep(*lowered, {}), SchedulePurpose::kTraining);
  SIPHON_CHECK(status.ok(), "a valid schedule stays valid with the end of a step");
}

}  // namespace siphon

#endif  // SIPHON_TESTS_FUZZ_CHECK_SCHEDULE_H_
