#include "launch/topology/discovered_server.h"

#include <algorithm>

#include "planner/status.h"

namespace siphon {
namespace {

// p2pBandwidthLatencyTest, small writes over NVLink: 1.8 to 2.8 us.
constexpr Nanos kLinkLatency(2'000);

}  // namespace

absl::StatusOr<Topology> BuildTopology(const DiscoveredServer& server) {
  Topology topology{.name = server.name, .switches = server.switches};
  const bool fabric = !server.fabric_wires.empty();
  if (fabric) topology.copy_engines = CopyEngines::kOneForAllPeers;
  const LinkGeneration none{};
  const LinkGeneration& links = server.links.has_value() ? *server.links : none;
  topology.device_kind = links.device;
  topology.nominal_wire_rate = links.nominal;
  const auto devices = static_cast<int>(server.numa.size());
  for (int device = 0; device < devices; ++device) {
    const BytesPerSecond cap =
        fabric ? links.measured * server.fabric_wires[device] : BytesPerSecond();
    topology.devices.push_back({.egress = cap, .ingress = cap, .numa = server.numa[device]});
    for (int peer = 0; peer < devices; ++peer) {
      const int wires = server.wires[device][peer];
      if (peer == device || wires == 0) continue;
      topology.links.push_back({.from = DeviceId(device),
                                .to = DeviceId(peer),
                                .rate = links.measured * wires,
                                .latency = kLinkLatency,
                                .wires = wires});
    }
  }
  SIPHON_RETURN_IF_ERROR(CheckTopology(topology));
  return topology;
}

}  // namespace siphon
