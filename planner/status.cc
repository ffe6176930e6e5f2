#include "planner/status.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace siphon {

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

void CheckFailed(const char* file, int line, const char* expression, absl::string_view promise) {
  std::fprintf(stderr, "%s:%d: broken promise: %s (%s)\n", file, line, std::string(promise).c_str(),
               expression);
  std::abort();
}

}  // namespace siphon
