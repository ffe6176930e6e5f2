#ifndef SIPHON_LAUNCH_TOPOLOGY_DISCOVERED_SERVER_H_
#define SIPHON_LAUNCH_TOPOLOGY_DISCOVERED_SERVER_H_

#include <optional>
#include <string>
#include <vector>

#include "launch/topology/link_generation.h"
#include "planner/topology.h"

namespace siphon {

// What other programs tell of a server: counts and groups, no rates.
struct DiscoveredServer {
  std::string name;
  std::optional<LinkGeneration> links;  // none: no wires
  std::vector<std::vector<int>> wires;  // [from][to]; on a fabric, those that both have
  std::vector<int> fabric_wires;        // [device]; empty: devices are wired to each other
  std::vector<int> numa;                // [device]
  std::vector<PcieSwitch> switches;
};

// The topology, and what a user must know of how it came about.
struct DiscoveredTopology {
  Topology topology;
  std::vector<std::string> notes;
};

// Rates by link_generation.h. Errors: as CheckTopology.
absl::StatusOr<Topology> BuildTopology(const DiscoveredServer& server);

// Reads what `nvidia-smi topo -m` prints, its legend and colours or not. Devices behind one switch
// are those that are PIX to each other or to one network card; where there is no PIX at all, PXB. A
// second level of switches is not told apart. `device` names their kind for the rates; empty: it is
// guessed from the wires, and a note says so.
// Errors: InvalidArgument "<name>:<line>:<column>: ..." for what is no such matrix, or cannot be.
absl::StatusOr<DiscoveredTopology> ParseNvidiaSmi(absl::string_view text, absl::string_view name,
                                                  absl::string_view device);

// Reads the XML that NCCL writes to NCCL_TOPO_DUMP_FILE. Devices are numbered in the order of their
// "dev". Those behind one switch are below the innermost PCI bridge that has several. `device` as
// above; empty: by NCCL's "sm".
// Errors: InvalidArgument "<name>:<line>:<column>: ...".
absl::StatusOr<DiscoveredTopology> ParseNcclXml(absl::string_view text, absl::string_view name,
                                                absl::string_view device);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_DISCOVERED_SERVER_H_
