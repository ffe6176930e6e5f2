#include "launch/topology/topology_keys.h"

#include <map>
#include <utility>

namespace siphon {
namespace {

using Links = std::map<std::pair<DeviceId, DeviceId>, TopologyLink>;

Links LinksOf(const TopologyKeys& keys) {
  Links links;
  for (int from = 0; from < keys.devices; ++from) {
    for (int to = 0; to < keys.devices; ++to) {
      const int64_t wires = keys.wires.empty() ? keys.fabric_wires : keys.wires[from][to];
      if (from == to || wires == 0) continue;
      links[{DeviceId(from), DeviceId(to)}] = {.from = DeviceId(from),
                                               .to = DeviceId(to),
                                               .rate = keys.wire_rate * wires,
                                               .latency = keys.latency,
                                               .wires = static_cast<int>(wires)};
    }
  }
  for (const TopologyLink& given : keys.links) {
    TopologyLink& link = links[{given.from, given.to}];
    const int wires = link.wires;
    link = given;
    link.wires = wires;
    if (given.latency.value < 0) link.latency = keys.latency;
  }
  return links;
}

// [device]: the switch that it is listed with; -1: none.
std::vector<int> SwitchesOf(const TopologyKeys& keys) {
  std::vector<int> behind(static_cast<size_t>(keys.devices), -1);
  for (size_t index = 0; index < keys.switches.size(); ++index) {
    for (const DeviceId device : keys.switches[index].devices) {
      behind[static_cast<size_t>(device.value)] = static_cast<int>(index);
    }
  }
  return behind;
}

}  // namespace

Topology MakeTopology(const TopologyKeys& keys) {
  Topology topology{.name = keys.name,
                    .device_kind = keys.device,
                    .switches = keys.switches,
                    .copy_engines = keys.copy_engines,
                    .nominal_wire_rate = keys.nominal_wire_rate,
                    .host_memory = keys.host_memory,
                    .drives = keys.drives};
  // All that a device has goes over its wires to the fabric, whoever the peers are.
  const BytesPerSecond fabric = keys.wire_rate * keys.fabric_wires;
  for (int64_t device = 0; device < keys.devices; ++device) {
    topology.devices.push_back(
        {.memory = keys.device_memory,
         .egress = keys.device_egress.value > 0 ? keys.device_egress : fabric,
         .ingress = keys.device_ingress.value > 0 ? keys.device_ingress : fabric,
         .numa = keys.numa.empty() ? 0 : static_cast<int>(keys.numa[device])});
  }
  for (const auto& [ends, link] : LinksOf(keys)) topology.links.push_back(link);
  return topology;
}

PciePaths PciePathsOf(const TopologyKeys& keys) {
  if (!keys.pcie_paths.empty()) return keys.pcie_paths;
  const std::vector<int> behind = SwitchesOf(keys);
  PciePaths paths(behind.size(), std::vector<PciePath>(behind.size(), PciePath::kUnknown));
  for (size_t from = 0; from < paths.size(); ++from) {
    for (size_t to = 0; to < paths.size(); ++to) {
      if (from == to) continue;
      const bool known_ways = behind[from] >= 0 && behind[to] >= 0;
      if (known_ways && behind[from] == behind[to]) {
        paths[from][to] = PciePath::kPix;
      } else if (!keys.numa.empty() && keys.numa[from] != keys.numa[to]) {
        paths[from][to] = PciePath::kSys;
      } else if (!keys.numa.empty() && known_ways) {
        paths[from][to] = PciePath::kNode;
      }
    }
  }
  return paths;
}

}  // namespace siphon
