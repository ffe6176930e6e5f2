#ifndef SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_KEYS_H_
#define SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_KEYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/topology/pcie_path.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// A topology file as written, each key checked.
struct TopologyKeys {
  std::string name;
  std::string device;
  int64_t devices = 0;
  Bytes device_memory;
  CopyEngines copy_engines = CopyEngines::kOnePerPeer;
  std::vector<std::vector<int64_t>> wires;  // [from][to]
  int64_t fabric_wires = 0;
  BytesPerSecond wire_rate;
  BytesPerSecond nominal_wire_rate;
  Nanos latency;
  std::vector<TopologyLink> links;  // a negative latency: not said
  BytesPerSecond device_egress;
  BytesPerSecond device_ingress;
  PciePaths pcie_paths;       // empty: not said
  std::vector<int64_t> numa;  // [device]; empty: not said
  std::vector<PcieSwitch> switches;
  Bytes host_memory;
  std::vector<NvmeDrive> drives;
};

// Makes links of wires, fabric and `links`, which replace what wires give between the same ends.
Topology MakeTopology(const TopologyKeys& keys);

// Those that the file has; where it has none, what its switches and nodes tell: devices of a switch
// are PIX; others NODE or SYS by their nodes, where their ways to the host are known.
PciePaths PciePathsOf(const TopologyKeys& keys);

// Reads what a file says, as ParseTopology does; parse_topology.cc. Errors: as ParseTopology.
absl::StatusOr<TopologyKeys> ParseTopologyKeys(absl::string_view text, absl::string_view name);

// The file that they are read from; write_topology.cc.
std::string TopologyYaml(const TopologyKeys& keys);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_TOPOLOGY_KEYS_H_
