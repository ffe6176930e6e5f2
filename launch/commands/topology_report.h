#ifndef SIPHON_LAUNCH_COMMANDS_TOPOLOGY_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_TOPOLOGY_REPORT_H_

#include <string>
#include <vector>

#include "launch/topology/discovered_server.h"

namespace siphon {

// All of a server: who is linked to whom and how fast, the way to the host, and how many maps of
// stages to devices differ. Notes and slow links come last.
std::string TopologyText(const std::string& source, const DiscoveredTopology& discovered);
// The same for programs.
std::string TopologyJson(const std::string& source, const DiscoveredTopology& discovered);

// One line a server.
std::string TopologyListText(const std::vector<std::string>& names,
                             const std::vector<Topology>& topologies);
std::string TopologyListJson(const std::vector<std::string>& names,
                             const std::vector<Topology>& topologies);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_TOPOLOGY_REPORT_H_
