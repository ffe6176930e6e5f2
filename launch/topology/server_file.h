#ifndef SIPHON_LAUNCH_TOPOLOGY_SERVER_FILE_H_
#define SIPHON_LAUNCH_TOPOLOGY_SERVER_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/topology/discovered_server.h"

namespace siphon {

// Who wrote a file about a server.
enum class ServerFormat { kTopologyFile, kNvidiaSmi, kNcclXml };

// By what is in it: a line that begins with GPU and a number is of nvidia-smi topo -m, what begins
// with < is XML; all else is a topology file, or none.
ServerFormat FormatOfServer(absl::string_view text);

// `device` names the kind of devices; empty: what the text tells. Notes of a topology file are its
// TopologyRemarks. Errors: as ParseTopology,
// ParseNvidiaSmi and ParseNcclXml; InvalidArgument for a device of a topology file, which has its
// own.
absl::StatusOr<DiscoveredTopology> ParseServer(absl::string_view text, absl::string_view name,
                                               ServerFormat format, absl::string_view device);

// A preset with what it says of its sources. Errors: as FindTopologyPreset.
absl::StatusOr<DiscoveredTopology> FindServerPreset(absl::string_view name);

// A file of any of these. Errors: also NotFound where it cannot be read.
absl::StatusOr<DiscoveredTopology> LoadServer(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_SERVER_FILE_H_
