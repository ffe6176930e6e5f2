#include "launch/commands/topology_report.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "launch/output/text_table.h"
#include "launch/topology/pcie_path.h"
#include "planner/topology_symmetry.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::string DeviceName(DeviceId device) { return absl::StrCat("GPU", device.value); }

std::string DeviceNames(const std::vector<DeviceId>& devices) {
  return absl::StrJoin(devices, " ", [](std::string* out, DeviceId device) {
    absl::StrAppend(out, DeviceName(device));
  });
}

// 24.2; a rate of 0 has no limit.
std::string Gigabytes(BytesPerSecond rate) {
  if (rate.value == 0) return "-";
  return absl::StrFormat("%.4g", static_cast<double>(rate.value) * 1e-9);
}

std::string SizeOr(Bytes size, const char* otherwise) {
  return size.value == 0 ? otherwise : FormatBytes(size);
}

std::string Grouped(absl::uint128 number) {
  std::ostringstream stream;
  stream << number;
  std::string text = stream.str();
  for (auto at = static_cast<ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

std::string GroupedOr(const std::optional<absl::uint128>& number) {
  return number.has_value() ? Grouped(*number) : "more than 10^38";
}

const char* EnginesName(CopyEngines engines) {
  return engines == CopyEngines::kOnePerPeer ? "one_per_peer" : "one_for_all_peers";
}

// As nvidia-smi topo -m has it.
std::string Connection(const DiscoveredTopology& discovered, DeviceId from, DeviceId to) {
  if (from == to) return "X";
  if (const int wires = WiresBetween(discovered.topology, from, to); wires > 0) {
    return absl::StrCat("NV", wires);
  }
  return std::string(PciePathName(discovered.pcie_paths[from.value][to.value]));
}

constexpr char kConnectionsHead[] =
    "Connections (NV#: NVLinks, PIX: one PCIe switch, PXB: several, PHB: a host bridge,\n"
    "NODE: one NUMA node, SYS: two, ?: not known)\n";

template <typename CellOf>
std::string Matrix(const Topology& topology, CellOf cell_of) {
  std::vector<std::string> header = {""};
  Rows rows;
  for (int from = 0; from < DeviceCount(topology); ++from) {
    header.push_back(DeviceName(DeviceId(from)));
    rows.push_back({DeviceName(DeviceId(from))});
    for (int to = 0; to < DeviceCount(topology); ++to) {
      rows.back().push_back(cell_of(DeviceId(from), DeviceId(to)));
    }
  }
  return TextTable(header, rows);
}

std::string RateCell(const Topology& topology, DeviceId from, DeviceId to) {
  const std::optional<TopologyLink> link = FindLink(topology, from, to);
  return link.has_value() ? Gigabytes(link->rate) : from == to ? "X" : "-";
}

// Copies that a device can have under way to peers at one time.
int CopyLanes(const Topology& topology, DeviceId device) {
  const auto peers =
      std::count_if(topology.links.begin(), topology.links.end(),
                    [device](const TopologyLink& link) { return link.from == device; });
  if (topology.copy_engines == CopyEngines::kOneForAllPeers) return peers > 0 ? 1 : 0;
  return static_cast<int>(peers);
}

std::string DevicesText(const DiscoveredTopology& discovered) {
  const Topology& topology = discovered.topology;
  Rows rows;
  for (int index = 0; index < DeviceCount(topology); ++index) {
    const TopologyDevice& device = topology.devices[index];
    const std::optional<int> behind = SwitchOf(topology, DeviceId(index));
    rows.push_back({DeviceName(DeviceId(index)), SizeOr(device.memory, "not known"),
                    Gigabytes(device.egress), Gigabytes(device.ingress),
                    absl::StrCat(CopyLanes(topology, DeviceId(index))),
                    behind.has_value() ? absl::StrCat(*behind) : "-",
                    discovered.knows_nodes ? absl::StrCat(device.numa) : "-"});
  }
  return TextTable(
      {"device", "memory", "all out GB/s", "all in GB/s", "copy lanes", "switch", "NUMA"}, rows);
}

std::string HostText(const Topology& topology) {
  std::string text = absl::StrCat("host memory  ", SizeOr(topology.host_memory, "not known"), "\n");
  if (!topology.switches.empty()) {
    Rows rows;
    for (size_t index = 0; index < topology.switches.size(); ++index) {
      const PcieSwitch& uplink = topology.switches[index];
      const auto both = [](BytesPerSecond rate) {
        return rate.value == 0 ? std::string("as alone") : Gigabytes(rate);
      };
      rows.push_back({absl::StrCat(index), Gigabytes(uplink.to_host), Gigabytes(uplink.from_host),
                      both(uplink.to_host_both), both(uplink.from_host_both),
                      FormatNanos(uplink.latency), DeviceNames(uplink.devices)});
    }
    absl::StrAppend(&text, "\nPCIe switches: their devices share one way to the host, GB/s\n",
                    TextTable({"switch", "to host", "from host", "to, both run", "from, both run",
                               "latency", "devices"},
                              rows, LastColumn::kWords));
  }
  if (topology.drives.empty()) return text;
  Rows rows;
  for (size_t index = 0; index < topology.drives.size(); ++index) {
    const NvmeDrive& drive = topology.drives[index];
    rows.push_back({absl::StrCat(index), FormatBytes(drive.capacity), Gigabytes(drive.read),
                    Gigabytes(drive.write), FormatNanos(drive.latency), absl::StrCat(drive.numa)});
  }
  absl::StrAppend(
      &text, "\nDrives\n",
      TextTable({"drive", "capacity", "read GB/s", "write GB/s", "latency", "NUMA"}, rows));
  return text;
}

std::string SymmetryText(const Topology& topology) {
  const TopologySymmetry whole(topology);
  const TopologySymmetry peers(topology, SymmetryScope::kDevicesAndLinks);
  std::string text = absl::StrCat(
      "Symmetry: renumberings of devices that change nothing, and stage maps that differ\n",
      TextTable(
          {"", "renumberings", "distinct maps"},
          {{"with host copies", GroupedOr(whole.GroupSize()), GroupedOr(whole.DistinctMaps())},
           {"without", GroupedOr(peers.GroupSize()), GroupedOr(peers.DistinctMaps())}}));
  if (!whole.exact() || !peers.exact()) {
    text += "The search for symmetry was cut short; there may be more.\n";
  }
  return text;
}

std::vector<std::string> Warnings(const Topology& topology) {
  std::vector<std::string> warnings;
  for (const TopologyLink& link : SlowLinks(topology)) {
    warnings.push_back(absl::StrCat(DeviceName(link.from), " to ", DeviceName(link.to), ": ",
                                    FormatRate(link.rate), " is below 60 % of ", link.wires, " x ",
                                    FormatRate(topology.nominal_wire_rate),
                                    "; counts of links promise more than this pair has"));
  }
  return warnings;
}

Json CountJson(const std::optional<absl::uint128>& count) {
  if (!count.has_value()) return nullptr;
  if (*count > std::numeric_limits<int64_t>::max()) {
    std::ostringstream stream;
    stream << *count;
    return stream.str();  // more digits than a number of JSON has everywhere
  }
  return static_cast<int64_t>(*count);
}

Json SymmetryJson(const TopologySymmetry& symmetry) {
  return {{"renumberings", CountJson(symmetry.GroupSize())},
          {"distinct_maps", CountJson(symmetry.DistinctMaps())},
          {"exact", symmetry.exact()}};
}

Json DevicesJson(const DiscoveredTopology& discovered) {
  const Topology& topology = discovered.topology;
  Json devices = Json::array();
  for (int index = 0; index < DeviceCount(topology); ++index) {
    const TopologyDevice& device = topology.devices[index];
    const std::optional<int> behind = SwitchOf(topology, DeviceId(index));
    devices.push_back({{"memory_bytes", device.memory.value},
                       {"egress_bytes_per_second", device.egress.value},
                       {"ingress_bytes_per_second", device.ingress.value},
                       {"copy_lanes", CopyLanes(topology, DeviceId(index))},
                       {"switch", behind.has_value() ? Json(*behind) : Json(nullptr)},
                       {"numa", discovered.knows_nodes ? Json(device.numa) : Json(nullptr)}});
  }
  return devices;
}

Json ConnectionsJson(const DiscoveredTopology& discovered) {
  Json rows = Json::array();
  for (int from = 0; from < DeviceCount(discovered.topology); ++from) {
    rows.push_back(Json::array());
    for (int to = 0; to < DeviceCount(discovered.topology); ++to) {
      rows.back().push_back(Connection(discovered, DeviceId(from), DeviceId(to)));
    }
  }
  return rows;
}

Json SwitchesJson(const Topology& topology) {
  Json switches = Json::array();
  for (const PcieSwitch& uplink : topology.switches) {
    Json devices = Json::array();
    for (const DeviceId device : uplink.devices) devices.push_back(device.value);
    switches.push_back({{"devices", devices},
                        {"to_host_bytes_per_second", uplink.to_host.value},
                        {"from_host_bytes_per_second", uplink.from_host.value},
                        {"to_host_both_bytes_per_second", uplink.to_host_both.value},
                        {"from_host_both_bytes_per_second", uplink.from_host_both.value},
                        {"latency_ns", uplink.latency.value}});
  }
  return switches;
}

}  // namespace

std::string TopologyText(const std::string& source, const DiscoveredTopology& discovered) {
  const Topology& topology = discovered.topology;
  std::string text = absl::StrCat(
      source, ": ", topology.name, "\n\n", kConnectionsHead,
      Matrix(topology,
             [&](DeviceId from, DeviceId to) { return Connection(discovered, from, to); }),
      "\nRate of one large copy from row to column, GB/s (-: through the host)\n",
      Matrix(topology, [&](DeviceId from, DeviceId to) { return RateCell(topology, from, to); }),
      "\nDevices (", topology.device_kind.empty() ? "kind not known" : topology.device_kind,
      "; -: not known; copy engines: ", EnginesName(topology.copy_engines), ")\n",
      DevicesText(discovered), "\n", HostText(topology), "\n", SymmetryText(topology));
  std::vector<std::string> remarks = discovered.notes;
  for (std::string& warning : Warnings(topology)) remarks.push_back("warning: " + warning);
  if (!remarks.empty()) text += "\n";
  for (const std::string& remark : remarks) absl::StrAppend(&text, remark, "\n");
  return text;
}

std::string TopologyJson(const std::string& source, const DiscoveredTopology& discovered) {
  const Topology& topology = discovered.topology;
  Json wires = Json::array();
  for (int from = 0; from < DeviceCount(topology); ++from) {
    wires.push_back(Json::array());
    for (int to = 0; to < DeviceCount(topology); ++to) {
      wires.back().push_back(WiresBetween(topology, DeviceId(from), DeviceId(to)));
    }
  }
  Json links = Json::array();
  for (const TopologyLink& link : topology.links) {
    links.push_back({{"from", link.from.value},
                     {"to", link.to.value},
                     {"wires", link.wires},
                     {"bytes_per_second", link.rate.value},
                     {"latency_ns", link.latency.value}});
  }
  Json drives = Json::array();
  for (const NvmeDrive& drive : topology.drives) {
    drives.push_back({{"capacity_bytes", drive.capacity.value},
                      {"read_bytes_per_second", drive.read.value},
                      {"write_bytes_per_second", drive.write.value},
                      {"latency_ns", drive.latency.value},
                      {"numa", drive.numa}});
  }
  const TopologySymmetry whole(topology);
  const Json json = {{"source", source},
                     {"name", topology.name},
                     {"device", topology.device_kind},
                     {"devices", DevicesJson(discovered)},
                     {"copy_engines", EnginesName(topology.copy_engines)},
                     {"connections", ConnectionsJson(discovered)},
                     {"wires", wires},
                     {"nominal_wire_bytes_per_second", topology.nominal_wire_rate.value},
                     {"links", links},
                     {"switches", SwitchesJson(topology)},
                     {"host_memory_bytes", topology.host_memory.value},
                     {"drives", drives},
                     {"distinct_maps", CountJson(whole.DistinctMaps())},
                     {"symmetry",
                      {{"with_host", SymmetryJson(whole)},
                       {"devices_and_links", SymmetryJson(TopologySymmetry(
                                                 topology, SymmetryScope::kDevicesAndLinks))}}},
                     {"notes", discovered.notes},
                     {"warnings", Warnings(topology)}};
  return json.dump(2) + "\n";
}

std::string TopologyListText(const std::vector<std::string>& names,
                             const std::vector<Topology>& topologies) {
  Rows rows;
  for (size_t index = 0; index < names.size(); ++index) {
    const Topology& topology = topologies[index];
    rows.push_back({names[index], absl::StrCat(DeviceCount(topology)),
                    SizeOr(topology.devices[0].memory, "not known"),
                    SizeOr(topology.host_memory, "not known"),
                    GroupedOr(TopologySymmetry(topology).DistinctMaps()), topology.name});
  }
  return TextTable({"preset", "devices", "memory each", "host memory", "distinct maps", "server"},
                   rows, LastColumn::kWords) +
         "\nsiphon topology --preset NAME shows one of them.\n";
}

std::string TopologyListJson(const std::vector<std::string>& names,
                             const std::vector<Topology>& topologies) {
  Json list = Json::array();
  for (size_t index = 0; index < names.size(); ++index) {
    const Topology& topology = topologies[index];
    list.push_back({{"preset", names[index]},
                    {"name", topology.name},
                    {"devices", DeviceCount(topology)},
                    {"distinct_maps", CountJson(TopologySymmetry(topology).DistinctMaps())}});
  }
  return Json{{"presets", list}}.dump(2) + "\n";
}

}  // namespace siphon
