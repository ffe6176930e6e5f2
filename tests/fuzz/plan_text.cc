// Any text is a plan that prints back as itself and whose programs and groups the validator can
// judge, or an error with its place.

#include "planner/plan_text.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/check_schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<siphon::PlanText> plan = siphon::ParsePlanText(text);
  if (!plan.ok()) {
    SIPHON_CHECK(plan.status().code() == absl::StatusCode::kInvalidArgument,
                 "a text that is no plan is the user's mistake");
    return 0;
  }
  const absl::StatusOr<siphon::PlanText> again = siphon::ParsePlanText(ToString(*plan));
  SIPHON_CHECK(again.ok() && *again == *plan, "a plan prints as what it was read from");
  siphon::CheckSchedule(plan->training);
  // Yes or no, whatever the groups that its actions name.
  const absl::Status status =
      siphon::ValidateSchedule(plan->training, siphon::SchedulePurpose::kTraining, plan->memory);
  SIPHON_CHECK(status.ok() || !status.message().empty(), "what is refused has a reason");
  return 0;
}
