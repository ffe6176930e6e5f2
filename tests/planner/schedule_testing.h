#ifndef SIPHON_TESTS_PLANNER_SCHEDULE_TESTING_H_
#define SIPHON_TESTS_PLANNER_SCHEDULE_TESTING_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/string_view.h"
#include "planner/schedule.h"
#include "planner/validate_schedule.h"

namespace siphon {

inline Schedule ParsedSchedule(absl::string_view text) {
  absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *schedule : Schedule{};
}

// The validator's message, or "valid".
inline std::string Verdict(const Schedule& schedule,
                           SchedulePurpose purpose = SchedulePurpose::kTraining) {
  const absl::Status status = ValidateSchedule(schedule, purpose);
  if (status.ok()) return "valid";
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

inline std::string Verdict(absl::string_view text,
                           SchedulePurpose purpose = SchedulePurpose::kTraining) {
  return Verdict(ParsedSchedule(text), purpose);
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_SCHEDULE_TESTING_H_
