#ifndef SIPHON_PLANNER_STATUS_H_
#define SIPHON_PLANNER_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// `status` with "<context>: " before its message; an OK status stays OK.
// Codes mean: InvalidArgument the user's input; FailedPrecondition wrong state or plan;
// ResourceExhausted memory; Unavailable a peer is gone; Cancelled stopped on request; NotFound
// unknown name; Internal our bug or a library's failure.
[[nodiscard]] absl::Status Annotate(const absl::Status& status, absl::string_view context);

// Ends the process with a message that names the broken promise. For our own bugs only, never for
// input.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression,
                              absl::string_view promise);

}  // namespace siphon

#define SIPHON_CHECK(condition, promise) \
  (static_cast<bool>(condition) ? void() \
                                : ::siphon::CheckFailed(__FILE__, __LINE__, #condition, promise))

#define SIPHON_RETURN_IF_ERROR(expression)                                \
  do {                                                                    \
    if (absl::Status siphon_status = (expression); !siphon_status.ok()) { \
      return siphon_status;                                               \
    }                                                                     \
  } while (false)

#define SIPHON_STATUS_CONCAT_INNER(a, b) a##b
#define SIPHON_STATUS_CONCAT(a, b) SIPHON_STATUS_CONCAT_INNER(a, b)
#define SIPHON_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                     \
  if (!result.ok()) return std::move(result).status();            \
  target = std::move(result).value()
// SIPHON_ASSIGN_OR_RETURN(auto plan, MakePlan(job));
#define SIPHON_ASSIGN_OR_RETURN(target, expression) \
  SIPHON_ASSIGN_OR_RETURN_INNER(SIPHON_STATUS_CONCAT(siphon_result_, __LINE__), target, expression)

#endif  // SIPHON_PLANNER_STATUS_H_
