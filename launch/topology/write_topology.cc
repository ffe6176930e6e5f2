#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/topology/topology_keys.h"

namespace siphon {
namespace {

std::string RateText(BytesPerSecond rate) { return absl::StrCat(rate.value, "B/s"); }
std::string TimeText(Nanos time) { return absl::StrCat(time.value, "ns"); }

// Between double quotes, as YAML reads it.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return quoted + "\"";
}

void AppendRate(absl::string_view key, BytesPerSecond rate, std::string* text) {
  if (rate.value > 0) absl::StrAppend(text, key, ": ", RateText(rate), "\n");
}

std::string List(const std::vector<std::string>& items) {
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

std::string DeviceList(const std::vector<DeviceId>& devices) {
  std::vector<std::string> numbers;
  for (const DeviceId device : devices) numbers.push_back(absl::StrCat(device.value));
  return List(numbers);
}

void AppendWires(const TopologyKeys& keys, std::string* text) {
  if (keys.fabric_wires > 0) absl::StrAppend(text, "fabric_wires: ", keys.fabric_wires, "\n");
  if (keys.wires.empty()) return;
  *text += "wires:\n";
  for (const std::vector<int64_t>& row : keys.wires) {
    absl::StrAppend(text, "  - [", absl::StrJoin(row, ", "), "]\n");
  }
}

void AppendLinks(const TopologyKeys& keys, std::string* text) {
  if (keys.links.empty()) return;
  *text += "links:\n";
  for (const TopologyLink& link : keys.links) {
    absl::StrAppend(text, "  - {from: ", link.from.value, ", to: ", link.to.value,
                    ", rate: ", RateText(link.rate));
    if (link.latency.value >= 0) absl::StrAppend(text, ", latency: ", TimeText(link.latency));
    *text += "}\n";
  }
}

void AppendPaths(const TopologyKeys& keys, std::string* text) {
  if (keys.pcie_paths.empty()) return;
  *text += "pcie_paths:\n";
  for (size_t from = 0; from < keys.pcie_paths.size(); ++from) {
    std::vector<std::string> words;
    for (const PciePath path : keys.pcie_paths[from]) {
      const bool is_known = path != PciePath::kUnknown;
      const bool is_itself = words.size() == from;
      words.emplace_back(is_known ? PciePathName(path) : is_itself ? "X" : kUnknownPath);
    }
    absl::StrAppend(text, "  - ", List(words), "\n");
  }
}

void AppendNuma(const TopologyKeys& keys, std::string* text) {
  std::vector<std::vector<std::string>> nodes;
  for (size_t device = 0; device < keys.numa.size(); ++device) {
    const auto node = static_cast<size_t>(keys.numa[device]);
    if (nodes.size() <= node) nodes.resize(node + 1);
    nodes[node].push_back(absl::StrCat(device));
  }
  if (nodes.empty()) return;
  std::vector<std::string> lists;
  for (const std::vector<std::string>& node : nodes) lists.push_back(List(node));
  absl::StrAppend(text, "numa_nodes: ", List(lists), "\n");
}

void AppendSwitches(const TopologyKeys& keys, std::string* text) {
  if (keys.switches.empty()) return;
  *text += "switches:\n";
  for (const PcieSwitch& one : keys.switches) {
    absl::StrAppend(text, "  - devices: ", DeviceList(one.devices), "\n");
    absl::StrAppend(text, "    to_host: ", RateText(one.to_host), "\n");
    absl::StrAppend(text, "    from_host: ", RateText(one.from_host), "\n");
    AppendRate("    to_host_both", one.to_host_both, text);
    AppendRate("    from_host_both", one.from_host_both, text);
    absl::StrAppend(text, "    latency: ", TimeText(one.latency), "\n");
  }
}

void AppendDrives(const TopologyKeys& keys, std::string* text) {
  if (keys.drives.empty()) return;
  *text += "drives:\n";
  for (const NvmeDrive& drive : keys.drives) {
    absl::StrAppend(text, "  - {capacity: ", drive.capacity.value,
                    "B, read: ", RateText(drive.read), ", write: ", RateText(drive.write),
                    ", latency: ", TimeText(drive.latency), ", numa: ", drive.numa, "}\n");
  }
}

}  // namespace

std::string TopologyYaml(const TopologyKeys& keys) {
  std::string text = absl::StrCat("name: ", Quoted(keys.name), "\n");
  if (!keys.device.empty()) absl::StrAppend(&text, "device: ", Quoted(keys.device), "\n");
  absl::StrAppend(&text, "devices: ", keys.devices, "\n");
  if (keys.device_memory.value > 0) {
    absl::StrAppend(&text, "device_memory: ", keys.device_memory.value, "B\n");
  }
  absl::StrAppend(
      &text, "copy_engines: ",
      keys.copy_engines == CopyEngines::kOnePerPeer ? "one_per_peer" : "one_for_all_peers", "\n");
  AppendWires(keys, &text);
  AppendRate("wire_rate", keys.wire_rate, &text);
  AppendRate("nominal_wire_rate", keys.nominal_wire_rate, &text);
  if (keys.latency.value > 0) absl::StrAppend(&text, "latency: ", TimeText(keys.latency), "\n");
  AppendLinks(keys, &text);
  AppendRate("device_egress", keys.device_egress, &text);
  AppendRate("device_ingress", keys.device_ingress, &text);
  AppendPaths(keys, &text);
  AppendNuma(keys, &text);
  AppendSwitches(keys, &text);
  if (keys.host_memory.value > 0) {
    absl::StrAppend(&text, "host_memory: ", keys.host_memory.value, "B\n");
  }
  AppendDrives(keys, &text);
  return text;
}

}  // namespace siphon
