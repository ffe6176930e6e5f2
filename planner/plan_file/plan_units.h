#ifndef SIPHON_PLANNER_PLAN_FILE_PLAN_UNITS_H_
#define SIPHON_PLANNER_PLAN_FILE_PLAN_UNITS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

// Exact, and read back by ParseNanos, ParseRate and ParseBytes. Times and rates have all their
// digits ("12.345678ms"); bytes are whole numbers of the unit that needs the fewest ("384MiB",
// "512GB").
std::string ExactText(Nanos time);
std::string ExactText(BytesPerSecond rate);
std::string ExactText(Bytes bytes);
std::string ExactText(int number);

// "  key:                value\n".
std::string KeyLine(absl::string_view key, absl::string_view value);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_PLAN_UNITS_H_
