// Any text is an action that prints back as itself, or an error.

#include <cstddef>
#include <cstdint>

#include "planner/action.h"
#include "planner/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<siphon::Action> action = siphon::ParseAction(text);
  if (!action.ok()) {
    SIPHON_CHECK(action.status().code() == absl::StatusCode::kInvalidArgument,
                 "a text that is no action is the user's mistake");
    return 0;
  }
  const absl::StatusOr<siphon::Action> again = siphon::ParseAction(ToString(*action));
  SIPHON_CHECK(again.ok() && *again == *action, "an action prints as what it was read from");
  return 0;
}
