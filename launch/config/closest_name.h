#ifndef SIPHON_LAUNCH_CONFIG_CLOSEST_NAME_H_
#define SIPHON_LAUNCH_CONFIG_CLOSEST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace siphon {

// The known name that `name` was most likely meant to be: the one at the least edit distance
// (adjacent letters swapped count once, "-" is "_", case does not count), if that is at most 2 or a
// third of the longer length. Empty when none is that near.
// Complexity: the product of the lengths for each candidate; names over 64 letters match nothing.
std::string ClosestName(absl::string_view name, const std::vector<std::string>& known);

// `text` in single quotes for a message: cut after 60 letters, control characters as \xNN.
std::string QuoteForMessage(absl::string_view text);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_CLOSEST_NAME_H_
