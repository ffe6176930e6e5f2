#ifndef SIPHON_LAUNCH_TOPOLOGY_DISCOVERED_SERVER_H_
#define SIPHON_LAUNCH_TOPOLOGY_DISCOVERED_SERVER_H_

#include <optional>
#include <string>
#include <vector>

#include "launch/topology/link_generation.h"
#include "launch/topology/pcie_path.h"
#include "planner/topology.h"

namespace siphon {

// What other programs tell of a server: counts and groups, no rates.
struct DiscoveredServer {
  std::string source;                   // the program, "nvidia-smi topo -m"
  std::string device;                   // their kind as somebody named it; empty: nobody did
  std::optional<LinkGeneration> links;  // none: neither wires nor a name tell the kind
  bool is_guess = false;                // `links` is of a kind that is like what there is
  std::vector<std::vector<int>> wires;  // [from][to]; on a fabric, those that both have
  std::vector<int> fabric_wires;        // [device]; empty: devices are wired to each other
  PciePaths pcie_paths;                 // empty: what switches and nodes tell
  std::vector<int> numa;                // [device]; -1: not known, and no device's counts
  std::vector<PcieSwitch> switches;
  std::vector<std::string> notes;
};

// The topology, and what a user must know of how it came about.
struct DiscoveredTopology {
  Topology topology;
  std::vector<std::string> notes;
  std::string yaml;  // a topology file of it with the notes; empty: it came from one
  // Beside what plans go by, for people to see.
  PciePaths pcie_paths;
  bool knows_nodes = false;  // else all devices count as on one NUMA node
};

// A topology file without its notes. Errors: as ParseTopology.
absl::StatusOr<DiscoveredTopology> ParseDiscovered(absl::string_view text, absl::string_view name);

// Rates by link_generation.h, the devices' memory by their kind where somebody named it (as the
// presets have it: a vendor's 80 GB are 80 GiB), each marked ASSUMED; host memory and drives are
// never told. Devices of a fabric count as having the fewest wires that one has up.
// Errors: InvalidArgument where the kind has no NVLinks and the server does; as ParseTopology.
absl::StatusOr<DiscoveredTopology> BuildTopology(const DiscoveredServer& server);

// Reads what `nvidia-smi topo -m` prints, its legend and colours or not. Devices behind one switch
// are those that are PIX to each other or to one network card; where there is no PIX at all, PXB. A
// second level of switches is not told apart. Where NVLinks hide the switches and there are no
// network cards, neighbours on a NUMA node share one, if servers with that kind of device are so,
// and a note says what is assumed. `device` names their kind for rates and memory; empty: the lines
// of `nvidia-smi -L` tell it ("GPU 0: Tesla V100-SXM2-32GB ..") where the text has them too, else
// it is guessed from the wires, and a note says so. Errors: InvalidArgument
// "<name>:<line>:<column>: ..." for what is no such matrix, or cannot be.
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
