// Any text is a schedule that prints back as itself and that the validator can judge, or an error.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/check_schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<siphon::Schedule> schedule = siphon::ParseSchedule(text);
  if (!schedule.ok()) {
    SIPHON_CHECK(schedule.status().code() == absl::StatusCode::kInvalidArgument,
                 "a text that is no schedule is the user's mistake");
    return 0;
  }
  const absl::StatusOr<siphon::Schedule> again = siphon::ParseSchedule(siphon::ToString(*schedule));
  SIPHON_CHECK(again.ok() && *again == *schedule, "a schedule prints as what it was read from");
  siphon::CheckSchedule(*schedule);
  return 0;
}
