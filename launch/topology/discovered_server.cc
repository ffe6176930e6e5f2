#include "launch/topology/discovered_server.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/topology/topology_file.h"
#include "launch/topology/topology_keys.h"
#include "planner/performance/device_spec.h"
#include "planner/status.h"

namespace siphon {
namespace {

// p2pBandwidthLatencyTest, small writes over NVLink: 1.8 to 2.8 us.
constexpr Nanos kLinkLatency(2'000);

// What a device of the kind has. Vendors say GB where devices have GiB, but not always, so that the
// presets tell it; the least, where a kind is in boards with more memory than its own.
Bytes MemoryOfKind(absl::string_view kind) {
  Bytes least;
  for (const TopologyPreset& preset : TopologyPresets()) {
    const absl::StatusOr<Topology> topology = FindTopologyPreset(preset.name);
    if (!topology.ok() || topology->device_kind != kind) continue;
    const Bytes memory = topology->devices.front().memory;
    if (memory > Bytes(0) && (least == Bytes(0) || memory < least)) least = memory;
  }
  return least;
}

// The kind as devices.def names it, and its memory.
void TakeDevice(const DiscoveredServer& server, TopologyKeys* keys) {
  if (!server.links.has_value()) return;
  keys->device = server.links->kind;
  if (server.device.empty()) return;
  const bool no_size = absl::EqualsIgnoreCase(server.device, server.links->device);
  const absl::StatusOr<DeviceSpec> spec =
      FindDeviceSpec(no_size ? server.links->kind : server.device);
  if (!spec.ok()) return;
  keys->device = spec->name;
  keys->device_memory = MemoryOfKind(spec->name);
  if (keys->device_memory == Bytes(0)) keys->device_memory = spec->capacity;
}

bool HasWires(const DiscoveredServer& server) {
  if (!server.fabric_wires.empty()) return true;
  return std::any_of(server.wires.begin(), server.wires.end(), [](const std::vector<int>& row) {
    return std::any_of(row.begin(), row.end(), [](int wires) { return wires > 0; });
  });
}

// Requires: HasWires, and their kind is known.
void TakeWires(const DiscoveredServer& server, TopologyKeys* keys,
               std::vector<std::string>* notes) {
  keys->wire_rate = server.links->measured;
  keys->nominal_wire_rate = server.links->nominal;
  keys->latency = kLinkLatency;
  if (server.fabric_wires.empty()) {
    for (const std::vector<int>& row : server.wires) {
      keys->wires.emplace_back(row.begin(), row.end());
    }
    return;
  }
  const auto [fewest, most] =
      std::minmax_element(server.fabric_wires.begin(), server.fabric_wires.end());
  keys->copy_engines = CopyEngines::kOneForAllPeers;
  keys->fabric_wires = *fewest;
  if (*fewest == *most) return;
  notes->push_back(absl::StrCat("warning: devices have ", *fewest, " to ", *most,
                                " NVLinks to the switches; each is taken to have ", *fewest));
}

// A file lists the devices of node 0, 1, ..; far-off numbers are counted anew, in their order. None
// where that of a device is not known: a file has all or none.
std::vector<int64_t> NodesOf(const std::vector<int>& numa) {
  if (std::any_of(numa.begin(), numa.end(), [](int node) { return node < 0; })) return {};
  std::map<int, int64_t> order;
  for (const int node : numa) order[node] = 0;
  const bool far = !order.empty() && order.rbegin()->first >= kMostDevices;
  int64_t next = 0;
  for (auto& [node, number] : order) number = far ? next++ : node;
  std::vector<int64_t> nodes;
  for (const int node : numa) nodes.push_back(order.at(node));
  return nodes;
}

std::string NameOf(const DiscoveredServer& server, const TopologyKeys& keys) {
  const bool is_told = !keys.device.empty() && !server.is_guess;
  return absl::StrCat(keys.devices, is_told ? absl::StrCat(" x ", keys.device) : " devices", " by ",
                      server.source, ", ",
                      server.is_guess ? absl::StrCat(keys.device, " and ") : "", "rates ASSUMED");
}

}  // namespace

absl::StatusOr<DiscoveredTopology> BuildTopology(const DiscoveredServer& server) {
  std::vector<std::string> notes = server.notes;
  TopologyKeys keys{.devices = static_cast<int64_t>(server.numa.size()),
                    .pcie_paths = server.pcie_paths,
                    .numa = NodesOf(server.numa),
                    .switches = server.switches};
  TakeDevice(server, &keys);
  if (HasWires(server)) {
    if (!server.links.has_value() || server.links->wires == 0) {
      return absl::InvalidArgumentError(absl::StrCat("has NVLinks, which devices of kind '",
                                                     server.device,
                                                     "' do not have; name the kind that is there"));
    }
    TakeWires(server, &keys, &notes);
  }
  keys.name = NameOf(server, keys);
  notes.emplace_back(
      "ASSUMED: rates are those of such links elsewhere, not measured on this server");
  if (keys.device_memory == Bytes(0)) {
    notes.emplace_back("the devices' memory is not told; --device names their kind");
  }
  notes.emplace_back("host memory and drives are not told; a topology file can have them");
  std::string yaml = absl::StrCat("# Source: ", server.source, ".\n# ",
                                  absl::StrJoin(notes, ".\n# "), ".\n", TopologyYaml(keys));
  SIPHON_ASSIGN_OR_RETURN(DiscoveredTopology discovered, ParseDiscovered(yaml, server.source));
  discovered.notes = std::move(notes);
  discovered.yaml = std::move(yaml);
  return discovered;
}

absl::StatusOr<DiscoveredTopology> ParseDiscovered(absl::string_view text, absl::string_view name) {
  SIPHON_ASSIGN_OR_RETURN(const TopologyKeys keys, ParseTopologyKeys(text, name));
  return DiscoveredTopology{.topology = MakeTopology(keys),
                            .pcie_paths = PciePathsOf(keys),
                            .knows_nodes = !keys.numa.empty()};
}

}  // namespace siphon
