// Our YAML, key by key. What a key says is checked where it stands, so that messages have its
// place.

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/config/config_map.h"
#include "launch/topology/device_matrices.h"
#include "launch/topology/topology_file.h"
#include "launch/topology/topology_keys.h"
#include "launch/topology/topology_values.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What a file has 0 for: no such thing exists, and in a topology 0 is "no limit known".
enum class IfZero { kMustBeWritten, kMayBeLeftOut, kCheckedElsewhere };

class TopologyReader {
 public:
  explicit TopologyReader(absl::string_view file) : file_(file) {}

  absl::StatusOr<TopologyKeys> Read(const ConfigNode& root);

 private:
  using Read1 = absl::Status (TopologyReader::*)(const ConfigNode&);

  MapKey Key(absl::string_view name, Read1 read) {
    return {.name = std::string(name),
            .read = [this, read](const ConfigNode& node) { return (this->*read)(node); }};
  }
  template <typename T>
  MapKey Value(absl::string_view name, T& into) {
    return ValueKey(file_, name, into);
  }
  MapKey Rate(absl::string_view name, BytesPerSecond& rate, IfZero zero = IfZero::kMayBeLeftOut) {
    return {.name = std::string(name), .read = [this, name, zero, &rate](const ConfigNode& node) {
              SIPHON_RETURN_IF_ERROR(ReadRate(file_, node, name, rate));
              return CheckZero(node, name, "rate", rate.value, zero);
            }};
  }
  MapKey Size(absl::string_view name, Bytes& size, IfZero zero = IfZero::kMayBeLeftOut) {
    return {.name = std::string(name), .read = [this, name, zero, &size](const ConfigNode& node) {
              SIPHON_RETURN_IF_ERROR(Value(name, size).read(node));
              return CheckZero(node, name, "size", size.value, zero);
            }};
  }
  absl::Status Wrong(const ConfigNode& node, absl::string_view problem) const {
    return ConfigErrorAt(file_, node, problem);
  }

  absl::Status CheckZero(const ConfigNode& node, absl::string_view name, absl::string_view what,
                         int64_t value, IfZero zero) const;
  absl::Status ReadDevice(const ConfigNode& node, absl::string_view where, DeviceId& device) const;
  absl::Status ReadDevices(const ConfigNode& node);
  absl::Status ReadCopyEngines(const ConfigNode& node);
  absl::Status ReadWires(const ConfigNode& node);
  absl::Status ReadFabricWires(const ConfigNode& node);
  absl::Status ReadPaths(const ConfigNode& node);
  absl::Status ReadLinks(const ConfigNode& node);
  absl::Status ReadNuma(const ConfigNode& node);
  absl::Status ReadSwitches(const ConfigNode& node);
  absl::Status ReadSwitchDevices(const ConfigNode& node, PcieSwitch& one);
  absl::Status ReadDrives(const ConfigNode& node);
  absl::Status CheckDriveNodes() const;
  absl::Status CheckTogether(const ConfigNode& root) const;

  std::string file_;
  TopologyKeys keys_;
  std::set<DeviceId> behind_switch_;
  int64_t nodes_ = 1;                                               // NUMA nodes
  std::vector<std::pair<const ConfigNode*, int64_t>> drive_nodes_;  // but for node 0
};

absl::Status TopologyReader::CheckZero(const ConfigNode& node, absl::string_view name,
                                       absl::string_view what, int64_t value, IfZero zero) const {
  if (value != 0 || zero == IfZero::kCheckedElsewhere) return absl::OkStatus();
  const bool may_go = zero == IfZero::kMayBeLeftOut;
  return Wrong(node, absl::StrCat(name, ": is 0; write a ", what, " above 0",
                                  may_go ? ", or leave the key out where it is not known" : ""));
}

absl::Status TopologyReader::ReadDevice(const ConfigNode& node, absl::string_view where,
                                        DeviceId& device) const {
  int64_t number = 0;
  const absl::Status read = ReadValue(node, number);
  if (!read.ok()) return Wrong(node, absl::StrCat(where, ": ", read.message()));
  if (number < 0 || number >= keys_.devices) {
    return Wrong(node, absl::StrCat(where, ": names device ", number, ", but devices are 0 to ",
                                    keys_.devices - 1));
  }
  device = DeviceId(static_cast<int>(number));
  return absl::OkStatus();
}

absl::Status TopologyReader::ReadDevices(const ConfigNode& node) {
  return ReadCount(file_, node, "devices", 1, kMostDevices, keys_.devices);
}

absl::Status TopologyReader::ReadCopyEngines(const ConfigNode& node) {
  if (node.text == "one_per_peer" || node.text == "one_for_all_peers") {
    keys_.copy_engines =
        node.text == "one_per_peer" ? CopyEngines::kOnePerPeer : CopyEngines::kOneForAllPeers;
    return absl::OkStatus();
  }
  return Wrong(node, absl::StrCat("copy_engines: is ", Describe(node),
                                  "; write one_per_peer (boards with direct links) or "
                                  "one_for_all_peers (NVSwitch)"));
}

absl::Status TopologyReader::ReadWires(const ConfigNode& node) {
  SIPHON_ASSIGN_OR_RETURN(keys_.wires, ReadWireMatrix(file_, node, keys_.devices));
  return absl::OkStatus();
}

absl::Status TopologyReader::ReadPaths(const ConfigNode& node) {
  SIPHON_ASSIGN_OR_RETURN(keys_.pcie_paths, ReadPathMatrix(file_, node, keys_.devices));
  return absl::OkStatus();
}

absl::Status TopologyReader::ReadFabricWires(const ConfigNode& node) {
  return ReadCount(file_, node, "fabric_wires", 1, kMostWires, keys_.fabric_wires);
}

absl::Status TopologyReader::ReadLinks(const ConfigNode& node) {
  SIPHON_RETURN_IF_ERROR(
      ReadListOf(file_, node, "links", "links such as '- {from: 0, to: 1, rate: 25GB/s}'"));
  std::set<std::pair<DeviceId, DeviceId>> seen;
  for (const ConfigNode& item : node.items) {
    TopologyLink link{.latency = Nanos(-1)};
    const auto device = [&](absl::string_view name, DeviceId& into) {
      return MapKey{.name = std::string(name),
                    .read =
                        [this, name, &into](const ConfigNode& value) {
                          return ReadDevice(value, absl::StrCat("links: ", name), into);
                        },
                    .required = true};
    };
    SIPHON_RETURN_IF_ERROR(
        ReadConfigMap(file_, item, "a link",
                      {device("from", link.from), device("to", link.to),
                       Required(Rate("rate", link.rate, IfZero::kCheckedElsewhere)),
                       Value("latency", link.latency)}));
    const std::string which = absl::StrCat("links: from ", link.from.value, " to ", link.to.value);
    if (link.from == link.to) return Wrong(item, absl::StrCat(which, " leads nowhere"));
    if (!seen.emplace(link.from, link.to).second) {
      return Wrong(item, absl::StrCat(which, " is given twice; remove one of them"));
    }
    if (link.rate.value == 0) {
      return Wrong(item, absl::StrCat(which, " has rate 0; leave out what is no link"));
    }
    keys_.links.push_back(link);
  }
  return absl::OkStatus();
}

absl::Status TopologyReader::ReadNuma(const ConfigNode& node) {
  SIPHON_RETURN_IF_ERROR(
      ReadListOf(file_, node, "numa_nodes", "lists of devices, one for each node"));
  keys_.numa.assign(keys_.devices, -1);
  nodes_ = static_cast<int64_t>(node.items.size());
  for (size_t numa = 0; numa < node.items.size(); ++numa) {
    const std::string where = absl::StrCat("numa_nodes: node ", numa);
    SIPHON_RETURN_IF_ERROR(ReadListOf(file_, node.items[numa], where, "devices"));
    for (const ConfigNode& item : node.items[numa].items) {
      DeviceId device;
      SIPHON_RETURN_IF_ERROR(ReadDevice(item, where, device));
      int64_t& known = keys_.numa[device.value];
      if (known >= 0) {
        return Wrong(item, absl::StrCat(where, ": device ", device.value, " is on node ", known,
                                        " already; a device is on one"));
      }
      known = static_cast<int64_t>(numa);
    }
  }
  for (int64_t device = 0; device < keys_.devices; ++device) {
    if (keys_.numa[device] >= 0) continue;
    return Wrong(node, absl::StrCat("numa_nodes: device ", device,
                                    " is on none; list every device, or leave the key out"));
  }
  return absl::OkStatus();
}

absl::Status TopologyReader::ReadSwitchDevices(const ConfigNode& node, PcieSwitch& one) {
  const std::string where = absl::StrCat("switches: switch ", keys_.switches.size());
  SIPHON_RETURN_IF_ERROR(ReadListOf(file_, node, where, "devices"));
  if (node.items.empty()) {
    return Wrong(node, absl::StrCat(where, ": has no devices; list those behind it"));
  }
  for (const ConfigNode& item : node.items) {
    DeviceId device;
    SIPHON_RETURN_IF_ERROR(ReadDevice(item, where, device));
    if (!behind_switch_.insert(device).second) {
      return Wrong(item, absl::StrCat(where, ": device ", device.value,
                                      " is behind a switch already; a device has one way to the "
                                      "host"));
    }
    one.devices.push_back(device);
  }
  return absl::OkStatus();
}

absl::Status TopologyReader::ReadSwitches(const ConfigNode& node) {
  SIPHON_RETURN_IF_ERROR(
      ReadListOf(file_, node, "switches", "switches such as '- devices: [0, 1]'"));
  for (const ConfigNode& item : node.items) {
    PcieSwitch one;
    const MapKey devices = {
        .name = "devices",
        .read = [this, &one](const ConfigNode& value) { return ReadSwitchDevices(value, one); },
        .required = true};
    SIPHON_RETURN_IF_ERROR(
        ReadConfigMap(file_, item, "a switch",
                      {devices, Required(Rate("to_host", one.to_host, IfZero::kMustBeWritten)),
                       Required(Rate("from_host", one.from_host, IfZero::kMustBeWritten)),
                       Rate("to_host_both", one.to_host_both),
                       Rate("from_host_both", one.from_host_both), Value("latency", one.latency)}));
    keys_.switches.push_back(std::move(one));
  }
  return absl::OkStatus();
}

absl::Status TopologyReader::ReadDrives(const ConfigNode& node) {
  SIPHON_RETURN_IF_ERROR(ReadListOf(file_, node, "drives", "drives such as '- capacity: 6TB'"));
  for (const ConfigNode& item : node.items) {
    NvmeDrive drive;
    const MapKey numa = {.name = "numa", .read = [this, &drive](const ConfigNode& value) {
                           int64_t number = 0;
                           const absl::Status read =
                               ReadCount(file_, value, "numa", 0, kMostDevices - 1, number);
                           drive.numa = static_cast<int>(number);
                           if (number > 0) drive_nodes_.emplace_back(&value, number);
                           return read;
                         }};
    SIPHON_RETURN_IF_ERROR(
        ReadConfigMap(file_, item, "a drive",
                      {Required(Size("capacity", drive.capacity, IfZero::kMustBeWritten)),
                       Required(Rate("read", drive.read, IfZero::kMustBeWritten)),
                       Required(Rate("write", drive.write, IfZero::kMustBeWritten)),
                       Value("latency", drive.latency), numa}));
    keys_.drives.push_back(drive);
  }
  return absl::OkStatus();
}

absl::Status TopologyReader::CheckDriveNodes() const {
  for (const auto& [place, node] : drive_nodes_) {
    if (node < nodes_) continue;
    const std::string known = nodes_ == 1 ? "the server has node 0 only (numa_nodes lists them)"
                                          : absl::StrCat("numa_nodes has 0 to ", nodes_ - 1);
    return Wrong(*place, absl::StrCat("numa: is ", node, ", but ", known));
  }
  return absl::OkStatus();
}

absl::Status TopologyReader::CheckTogether(const ConfigNode& root) const {
  SIPHON_RETURN_IF_ERROR(CheckDriveNodes());
  const bool has_wires = !keys_.wires.empty() || keys_.fabric_wires > 0;
  if (!keys_.wires.empty() && keys_.fabric_wires > 0) {
    return Wrong(root,
                 "has both 'wires' and 'fabric_wires'; devices are wired to each other or to "
                 "a fabric, remove one");
  }
  if (has_wires && keys_.wire_rate.value == 0) {
    return Wrong(root, "has wires, but no 'wire_rate'; write what one wire gives in one direction");
  }
  if (!has_wires && keys_.wire_rate.value > 0) {
    return Wrong(root, "has a 'wire_rate', but no wires; write 'wires' or 'fabric_wires'");
  }
  return absl::OkStatus();
}

absl::StatusOr<TopologyKeys> TopologyReader::Read(const ConfigNode& root) {
  if (root.kind == ConfigNode::Kind::kEmpty) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ":1:1: is empty; write a topology, beginning with 'name:'"));
  }
  // Other keys are checked against the number of devices, wherever it stands in the file.
  bool has_devices = root.kind != ConfigNode::Kind::kMap;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text != "devices") continue;
    has_devices = true;
    SIPHON_RETURN_IF_ERROR(ReadDevices(root.items[i]));
  }
  if (!has_devices) return Wrong(root, "a topology has no 'devices'; it needs one");
  MapKey devices = Key("devices", &TopologyReader::ReadDevices);
  SIPHON_RETURN_IF_ERROR(ReadConfigMap(
      file_, root, "a topology",
      {Required(Value("name", keys_.name)), Value("device", keys_.device), std::move(devices),
       Size("device_memory", keys_.device_memory), Rate("device_egress", keys_.device_egress),
       Rate("device_ingress", keys_.device_ingress),
       Key("copy_engines", &TopologyReader::ReadCopyEngines),
       Key("wires", &TopologyReader::ReadWires),
       Key("fabric_wires", &TopologyReader::ReadFabricWires), Rate("wire_rate", keys_.wire_rate),
       Rate("nominal_wire_rate", keys_.nominal_wire_rate), Value("latency", keys_.latency),
       Key("links", &TopologyReader::ReadLinks), Key("numa_nodes", &TopologyReader::ReadNuma),
       Key("pcie_paths", &TopologyReader::ReadPaths),
       Key("switches", &TopologyReader::ReadSwitches), Size("host_memory", keys_.host_memory),
       Key("drives", &TopologyReader::ReadDrives)}));
  SIPHON_RETURN_IF_ERROR(CheckTogether(root));
  SIPHON_RETURN_IF_ERROR(Annotate(CheckTopology(MakeTopology(keys_)), file_));
  return keys_;
}

}  // namespace

absl::StatusOr<TopologyKeys> ParseTopologyKeys(absl::string_view text, absl::string_view name) {
  SIPHON_ASSIGN_OR_RETURN(const ConfigNode root, ParseConfigTree(text, name));
  return TopologyReader(name).Read(root);
}

absl::StatusOr<Topology> ParseTopology(absl::string_view text, absl::string_view name) {
  SIPHON_ASSIGN_OR_RETURN(const TopologyKeys keys, ParseTopologyKeys(text, name));
  return MakeTopology(keys);
}

}  // namespace siphon
