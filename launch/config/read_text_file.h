#ifndef SIPHON_LAUNCH_CONFIG_READ_TEXT_FILE_H_
#define SIPHON_LAUNCH_CONFIG_READ_TEXT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

// The longest text that people hand to a command: schedules of 10 million cells are shorter.
inline constexpr Bytes kLongestTextFile{int64_t{256} << 20};

// All of a file that people name. `what` is what it should be, for messages: "profile".
//
// Errors: NotFound "cannot read profile 'PATH': No such file or directory" (or what else the system
// says); InvalidArgument for a file of more than `longest`, of which no more than that is read.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, absl::string_view what,
                                         Bytes longest = kLongestTextFile);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_READ_TEXT_FILE_H_
