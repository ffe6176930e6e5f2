#include "planner/topology.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Below this share of the nominal rate something is wrong with a link, not just slow: sound ones
// measure 80 to 97 %.
constexpr int64_t kSlowPercent = 60;

absl::Status CheckNotNegative(int64_t value, absl::string_view what) {
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", value, "; 0 is the least"));
}

absl::Status CheckDeviceExists(const Topology& topology, DeviceId device, absl::string_view where) {
  if (device.value >= 0 && device.value < DeviceCount(topology)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      where, " names device ", device.value, ", but devices are 0 to ", DeviceCount(topology) - 1));
}

absl::Status CheckLinks(const Topology& topology) {
  std::set<std::pair<DeviceId, DeviceId>> seen;
  for (const TopologyLink& link : topology.links) {
    const std::string where =
        absl::StrCat("the link from device ", link.from.value, " to device ", link.to.value);
    SIPHON_RETURN_IF_ERROR(CheckDeviceExists(topology, link.from, where));
    SIPHON_RETURN_IF_ERROR(CheckDeviceExists(topology, link.to, where));
    SIPHON_RETURN_IF_ERROR(CheckNotNegative(link.rate.value, absl::StrCat("the rate of ", where)));
    SIPHON_RETURN_IF_ERROR(
        CheckNotNegative(link.latency.value, absl::StrCat("the latency of ", where)));
    SIPHON_RETURN_IF_ERROR(
        CheckNotNegative(link.wires, absl::StrCat("the number of wires of ", where)));
    if (ServerOf(topology, link.from) != ServerOf(topology, link.to)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " joins two servers, between which there is only a network"));
    }
    if (link.from == link.to) {
      return absl::InvalidArgumentError(absl::StrCat(where, " leads nowhere"));
    }
    if (!seen.emplace(link.from, link.to).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " is given twice; one entry has the rate of all wires together"));
    }
  }
  return absl::OkStatus();
}

// Numbered in the order of their first devices; each with a drive if one has one.
absl::Status CheckServers(const Topology& topology) {
  int servers = 0;
  for (const TopologyDevice& device : topology.devices) {
    if (device.server < 0 || device.server > servers) {
      return absl::InvalidArgumentError(
          absl::StrCat("a device is of server ", device.server, " before one of server ", servers));
    }
    servers = std::max(servers, device.server + 1);
  }
  std::set<int> with_drive;
  for (const NvmeDrive& drive : topology.drives) {
    if (drive.server < 0 || drive.server >= std::max(servers, 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a drive is of server ", drive.server, ", which has no devices"));
    }
    with_drive.insert(drive.server);
  }
  if (!with_drive.empty() && static_cast<int>(with_drive.size()) < servers) {
    return absl::InvalidArgumentError("a server has no drive, and another has one");
  }
  SIPHON_RETURN_IF_ERROR(
      CheckNotNegative(topology.network.rate.value, "the rate of the network between servers"));
  return CheckNotNegative(topology.network.latency.value,
                          "the latency of the network between servers");
}

absl::Status CheckSwitches(const Topology& topology) {
  std::vector<int> switch_of(topology.devices.size(), -1);
  for (size_t index = 0; index < topology.switches.size(); ++index) {
    const PcieSwitch& uplink = topology.switches[index];
    const std::string where = absl::StrCat("switch ", index);
    for (const DeviceId device : uplink.devices) {
      SIPHON_RETURN_IF_ERROR(CheckDeviceExists(topology, device, where));
      int& known = switch_of[device.value];
      if (known >= 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "device ", device.value, " is behind switch ", known, " and behind switch ", index));
      }
      known = static_cast<int>(index);
      if (ServerOf(topology, device) != ServerOf(topology, uplink.devices.front())) {
        return absl::InvalidArgumentError(absl::StrCat(where, " has devices of two servers"));
      }
    }
    for (const BytesPerSecond rate :
         {uplink.to_host, uplink.from_host, uplink.to_host_both, uplink.from_host_both}) {
      SIPHON_RETURN_IF_ERROR(CheckNotNegative(rate.value, absl::StrCat("a rate of ", where)));
    }
    SIPHON_RETURN_IF_ERROR(
        CheckNotNegative(uplink.latency.value, absl::StrCat("the latency of ", where)));
  }
  return absl::OkStatus();
}

}  // namespace

int DeviceCount(const Topology& topology) { return static_cast<int>(topology.devices.size()); }

int ServerCount(const Topology& topology) {
  int servers = 1;
  for (const TopologyDevice& device : topology.devices) {
    servers = std::max(servers, device.server + 1);
  }
  return servers;
}

int ServerOf(const Topology& topology, DeviceId device) {
  const auto place = static_cast<size_t>(device.value);
  return place < topology.devices.size() ? topology.devices[place].server : 0;
}

int IndexInServer(const Topology& topology, DeviceId device) {
  int index = device.value;
  for (int other = 0; other < std::min(device.value, DeviceCount(topology)); ++other) {
    if (ServerOf(topology, DeviceId(other)) != ServerOf(topology, device)) --index;
  }
  return index;
}

std::string HostName(const Topology& topology, int server) {
  if (ServerCount(topology) == 1) return "the host";
  return absl::StrCat("the host of server ", server);
}

std::optional<TopologyLink> FindLink(const Topology& topology, DeviceId from, DeviceId to) {
  for (const TopologyLink& link : topology.links) {
    if (link.from == from && link.to == to) return link;
  }
  return std::nullopt;
}

std::optional<int> SwitchOf(const Topology& topology, DeviceId device) {
  for (size_t index = 0; index < topology.switches.size(); ++index) {
    const std::vector<DeviceId>& devices = topology.switches[index].devices;
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      return static_cast<int>(index);
    }
  }
  return std::nullopt;
}

int WiresBetween(const Topology& topology, DeviceId from, DeviceId to) {
  const std::optional<TopologyLink> link = FindLink(topology, from, to);
  return link.has_value() ? link->wires : 0;
}

PcieDistance PcieDistanceBetween(const Topology& topology, DeviceId a, DeviceId b) {
  const std::optional<int> one = SwitchOf(topology, a);
  if (one.has_value() && one == SwitchOf(topology, b)) return PcieDistance::kSameSwitch;
  const bool same_numa = topology.devices[a.value].numa == topology.devices[b.value].numa;
  return same_numa ? PcieDistance::kSameNuma : PcieDistance::kOtherNuma;
}

std::vector<TopologyLink> SlowLinks(const Topology& topology) {
  std::vector<TopologyLink> slow;
  for (const TopologyLink& link : topology.links) {
    const BytesPerSecond nominal = topology.nominal_wire_rate * link.wires;
    if (link.rate.value > 0 && link.rate.value < nominal.value / 100 * kSlowPercent) {
      slow.push_back(link);
    }
  }
  return slow;
}

int DriveOf(const Topology& topology, DeviceId device) {
  const auto node = [&](int index) {  // 0 where workers have no devices of their own
    const auto place = static_cast<size_t>(index);
    return place < topology.devices.size() ? topology.devices[place].numa : 0;
  };
  const int server = ServerOf(topology, device);
  std::vector<int> near, of_server;
  for (size_t index = 0; index < topology.drives.size(); ++index) {
    const NvmeDrive& drive = topology.drives[index];
    if (drive.server != server) continue;
    of_server.push_back(static_cast<int>(index));
    if (drive.numa == node(device.value)) near.push_back(static_cast<int>(index));
  }
  size_t turn = 0;
  for (int other = 0; other < device.value; ++other) {
    if (ServerOf(topology, DeviceId(other)) != server) continue;
    turn += near.empty() || node(other) == node(device.value) ? 1 : 0;
  }
  const std::vector<int>& mine = near.empty() ? of_server : near;
  return mine[turn % mine.size()];
}

absl::Status CheckTopology(const Topology& topology) {
  for (size_t index = 0; index < topology.devices.size(); ++index) {
    const TopologyDevice& device = topology.devices[index];
    const std::string where = absl::StrCat(" of device ", index);
    SIPHON_RETURN_IF_ERROR(CheckNotNegative(device.memory.value, "the memory" + where));
    SIPHON_RETURN_IF_ERROR(CheckNotNegative(device.egress.value, "the egress" + where));
    SIPHON_RETURN_IF_ERROR(CheckNotNegative(device.ingress.value, "the ingress" + where));
  }
  SIPHON_RETURN_IF_ERROR(CheckLinks(topology));
  SIPHON_RETURN_IF_ERROR(CheckSwitches(topology));
  SIPHON_RETURN_IF_ERROR(CheckServers(topology));
  for (size_t index = 0; index < topology.drives.size(); ++index) {
    const NvmeDrive& drive = topology.drives[index];
    for (const int64_t value :
         {drive.capacity.value, drive.read.value, drive.write.value, drive.latency.value}) {
      SIPHON_RETURN_IF_ERROR(CheckNotNegative(value, absl::StrCat("a figure of drive ", index)));
    }
  }
  SIPHON_RETURN_IF_ERROR(
      CheckNotNegative(topology.nominal_wire_rate.value, "the nominal rate of a wire"));
  return CheckNotNegative(topology.host_memory.value, "the host memory");
}

Topology SeveralServers(const Topology& server, int servers, const ServerNetwork& network) {
  SIPHON_CHECK(ServerCount(server) == 1 && servers >= 1, "one server is made several of");
  Topology all = server;
  if (servers == 1) return all;
  all.name = absl::StrCat(servers, " x ", server.name);
  all.network = network;
  int nodes = 1;
  for (const TopologyDevice& device : server.devices) nodes = std::max(nodes, device.numa + 1);
  for (const NvmeDrive& drive : server.drives) nodes = std::max(nodes, drive.numa + 1);
  for (int number = 1; number < servers; ++number) {
    const int first = number * DeviceCount(server);
    const auto moved = [first](DeviceId device) { return DeviceId(first + device.value); };
    for (TopologyDevice device : server.devices) {
      device.numa += number * nodes;
      device.server = number;
      all.devices.push_back(device);
    }
    for (TopologyLink link : server.links) {
      link.from = moved(link.from);
      link.to = moved(link.to);
      all.links.push_back(link);
    }
    for (PcieSwitch uplink : server.switches) {
      for (DeviceId& device : uplink.devices) device = moved(device);
      all.switches.push_back(std::move(uplink));
    }
    for (NvmeDrive drive : server.drives) {
      drive.numa += number * nodes;
      drive.server = number;
      all.drives.push_back(drive);
    }
  }
  return all;
}

Topology UniformTopology(int devices, BytesPerSecond rate, Nanos latency) {
  Topology topology{.name = absl::StrCat(devices, " devices, all linked alike")};
  topology.devices.resize(devices);
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from == to) continue;
      topology.links.push_back(
          {.from = DeviceId(from), .to = DeviceId(to), .rate = rate, .latency = latency});
    }
  }
  return topology;
}

Topology NvswitchTopology(int devices, BytesPerSecond rate, Nanos latency) {
  Topology topology = UniformTopology(devices, rate, latency);
  topology.name = absl::StrCat(devices, " devices on one NVSwitch fabric");
  topology.copy_engines = CopyEngines::kOneForAllPeers;
  for (TopologyDevice& device : topology.devices) {
    device.egress = rate;
    device.ingress = rate;
  }
  return topology;
}

Topology WithHost(Topology topology, int devices_per_switch, const PcieSwitch& uplink) {
  SIPHON_CHECK(devices_per_switch >= 1, "a switch has at least one device");
  topology.switches.clear();
  for (int device = 0; device < DeviceCount(topology); ++device) {
    if (device % devices_per_switch == 0) {
      topology.switches.push_back(uplink);
      topology.switches.back().devices.clear();
    }
    topology.switches.back().devices.push_back(DeviceId(device));
  }
  return topology;
}

}  // namespace siphon
