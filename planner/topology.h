#ifndef SIPHON_PLANNER_TOPOLOGY_H_
#define SIPHON_PLANNER_TOPOLOGY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/ids.h"
#include "planner/units.h"

namespace siphon {

// A rate of 0 means "no limit known", here and in all of a topology.

struct TopologyDevice {
  Bytes memory;            // 0: not known
  BytesPerSecond egress;   // what leaves it over all its links together
  BytesPerSecond ingress;  // what comes in over all of them
  int numa = 0;            // of all servers together
  int server = 0;          // what has a host of its own
  friend bool operator==(const TopologyDevice&, const TopologyDevice&) = default;
};

// One direction between two devices, whatever the number of wires: NVLink, or PCIe within a switch.
struct TopologyLink {
  DeviceId from;
  DeviceId to;
  BytesPerSecond rate;  // of one large copy, measured while the other direction is idle
  Nanos latency;
  int wires = 0;  // NVLinks; 0: PCIe, or not known
  friend bool operator==(const TopologyLink&, const TopologyLink&) = default;
};

// A PCIe switch: its devices share one uplink to the host.
struct PcieSwitch {
  std::vector<DeviceId> devices;
  BytesPerSecond to_host;         // while nothing comes from the host
  BytesPerSecond from_host;       // while nothing goes to the host
  BytesPerSecond to_host_both;    // while both directions run; 0: as alone
  BytesPerSecond from_host_both;  // likewise
  Nanos latency;
  friend bool operator==(const PcieSwitch&, const PcieSwitch&) = default;
};

// How many copies a device can have under way to and from its peers (facts of the driver: boards
// with direct links give each peer a copy engine of its own, boards with NVSwitch give all peers
// one).
enum class CopyEngines { kOnePerPeer, kOneForAllPeers };

struct NvmeDrive {
  Bytes capacity;
  BytesPerSecond read;
  BytesPerSecond write;
  Nanos latency;
  int numa = 0;
  int server = 0;
  friend bool operator==(const NvmeDrive&, const NvmeDrive&) = default;
};

// How devices of different servers reach each other: from device to network and back without the
// host (GPUDirect), so that only these count. Servers are alike.
struct ServerNetwork {
  BytesPerSecond rate;  // of one server's adapters together, each direction
  Nanos latency;
  friend bool operator==(const ServerNetwork&, const ServerNetwork&) = default;
};

// One server as measured or published, or several that are alike (SeveralServers). Immutable fact.
struct Topology {
  std::string name;
  std::string device_kind;              // as in planner/performance/devices.def; may be empty
  std::vector<TopologyDevice> devices;  // DeviceId is the place in here
  std::vector<TopologyLink> links;
  std::vector<PcieSwitch> switches;
  CopyEngines copy_engines = CopyEngines::kOnePerPeer;
  BytesPerSecond nominal_wire_rate;  // of one NVLink, one direction, by its data sheet
  Bytes host_memory;                 // of one server; 0: not known
  std::vector<NvmeDrive> drives;
  ServerNetwork network;  // between servers
  friend bool operator==(const Topology&, const Topology&) = default;
};

int DeviceCount(const Topology& topology);
int ServerCount(const Topology& topology);  // at least 1
// 0 where workers have no devices of their own: they are processes of one machine.
int ServerOf(const Topology& topology, DeviceId device);
// Its number among the devices of its server.
int IndexInServer(const Topology& topology, DeviceId device);
// "the host", of several servers "the host of server 1".
std::string HostName(const Topology& topology, int server);

// The link, if there is one. O(links).
std::optional<TopologyLink> FindLink(const Topology& topology, DeviceId from, DeviceId to);
// Index of the switch that connects the device to the host, if there is one.
std::optional<int> SwitchOf(const Topology& topology, DeviceId device);
// NVLinks from the one to the other; 0 where there is no link.
int WiresBetween(const Topology& topology, DeviceId from, DeviceId to);

// Where two devices meet, nearest first, as `nvidia-smi topo -m` tells it: one PCIe switch (PIX),
// one NUMA node (NODE), or the bus between NUMA nodes (SYS).
enum class PcieDistance { kSameSwitch, kSameNuma, kOtherNuma };
PcieDistance PcieDistanceBetween(const Topology& topology, DeviceId a, DeviceId b);

// Links whose rate is below 60 % of what their wires should give: counts of links promise more than
// such a pair has, and a plan by them would be wrong. Empty where no nominal rate is known.
std::vector<TopologyLink> SlowLinks(const Topology& topology);

// Index of the drive that the device uses: the devices of a NUMA node take its drives in turn;
// those of a node without one take all drives of their server in turn. Requires: the topology has
// drives, and each server if there are several.
int DriveOf(const Topology& topology, DeviceId device);

// Errors: InvalidArgument for a device that does not exist, a link from a device to itself or
// given twice, a link or a switch between servers, a device behind two switches, a negative rate,
// size, latency or number of wires, servers that do not begin at 0 one after the other.
absl::Status CheckTopology(const Topology& topology);

// Every two devices joined by a link of its own, both ways; no way to the host.
Topology UniformTopology(int devices, BytesPerSecond rate, Nanos latency);

// The same, each link as fast as its device's whole fabric, which caps egress and ingress; one copy
// engine for all peers.
Topology NvswitchTopology(int devices, BytesPerSecond rate, Nanos latency);

// `topology` with neighbouring devices, `devices_per_switch` at a time, behind switches like
// `uplink` (its `devices` are ignored). Requires: devices_per_switch >= 1.
Topology WithHost(Topology topology, int devices_per_switch, const PcieSwitch& uplink);

// Devices, NUMA nodes, switches and drives of `server`, so many times, joined by `network`: server
// k has devices k * DeviceCount(server) and on. Requires: `server` is one.
Topology SeveralServers(const Topology& server, int servers, const ServerNetwork& network);

}  // namespace siphon

#endif  // SIPHON_PLANNER_TOPOLOGY_H_
