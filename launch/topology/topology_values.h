#ifndef SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_VALUES_H_
#define SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_VALUES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "launch/config/config_tree.h"
#include "planner/units.h"

namespace siphon {

// Values of topology files. `name` stands for the key in messages. Errors: InvalidArgument
// "<file>:<line>:<column>: <name>: <what is wrong>; <what would be right>".

// More than any board has between two devices; keeps rates within 64 bits.
inline constexpr int64_t kMostWires = 64;

absl::Status ReadRate(absl::string_view file, const ConfigNode& node, absl::string_view name,
                      BytesPerSecond& rate);
// A number from `least` to `most`.
absl::Status ReadCount(absl::string_view file, const ConfigNode& node, absl::string_view name,
                       int64_t least, int64_t most, int64_t& count);
// That the node is a list; `what` says of what.
absl::Status ReadListOf(absl::string_view file, const ConfigNode& node, absl::string_view name,
                        absl::string_view what);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_VALUES_H_
