#ifndef SIPHON_TESTS_PIPELINE_SCHEDULES_BUILT_SCHEDULE_H_
#define SIPHON_TESTS_PIPELINE_SCHEDULES_BUILT_SCHEDULE_H_

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/string_view.h"
#include "pipeline/schedules/build_schedule.h"

namespace siphon {

// The schedule of that name; a failed test where there is none.
inline Schedule Built(absl::string_view name, const ScheduleShape& shape) {
  absl::StatusOr<Schedule> schedule = BuildSchedule(name, shape);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule{};
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_SCHEDULES_BUILT_SCHEDULE_H_
