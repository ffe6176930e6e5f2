#ifndef SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_FILE_H_
#define SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/topology.h"

namespace siphon {

// More devices than any server has today; searches of maps and symmetry are not meant for more.
inline constexpr int kMostDevices = 128;

// Reads a topology from our YAML; `name` is the file's in messages. README.md has the keys.
// Errors: InvalidArgument "<name>:<line>:<column>: <problem>; <what would be right>", also for what
// parses and cannot be: wires that differ by direction, devices that do not exist, no devices.
absl::StatusOr<Topology> ParseTopology(absl::string_view text, absl::string_view name);
absl::StatusOr<Topology> LoadTopology(const std::string& path);

// What the file says of where it comes from: its first comments, and all later ones that have
// ASSUMED in them, without blanks and # around; a comment behind a value with its line. A comment
// goes on with the next line where it does not end with a full stop and that line does not begin
// with a label ("note: ..").
std::vector<std::string> TopologyRemarks(absl::string_view text);

// The presets, compiled in from configs/topologies; their names are the files'.
struct TopologyPreset {
  absl::string_view name;
  absl::string_view text;
};
const std::vector<TopologyPreset>& TopologyPresets();
// Errors: NotFound, the nearest name or all of them listed.
absl::StatusOr<Topology> FindTopologyPreset(absl::string_view name);

// A text file of at most 1 MiB. Errors: NotFound "<path>: ..." if it cannot be read.
absl::StatusOr<std::string> ReadTopologyText(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_FILE_H_
