#include "launch/topology/server_facts.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launch/topology/link_generation.h"
#include "launch/topology/pcie_path.h"
#include "planner/performance/device_spec.h"

namespace siphon {
namespace {

std::string DeviceName(size_t device) { return absl::StrCat("GPU", device); }

// Wires of the visible devices.
struct Wires {
  std::vector<std::vector<int64_t>> to_device;  // [from][to]
  std::vector<int64_t> to_switch;               // [device]
};

Wires CountWires(const std::vector<CudaDeviceInfo>& devices, const NvmlServer& nvml,
                 std::vector<std::string>* notes) {
  std::map<std::string, size_t> places;
  for (size_t device = 0; device < devices.size(); ++device) {
    places[CanonicalBusId(devices[device].bus_id)] = device;
  }
  Wires wires{.to_device = std::vector(devices.size(), std::vector<int64_t>(devices.size())),
              .to_switch = std::vector<int64_t>(devices.size())};
  std::vector<bool> shown(devices.size());
  int elsewhere = 0;
  for (const NvmlDevice& known : nvml.devices) {
    const auto from = places.find(known.bus_id);
    if (from == places.end()) continue;
    shown[from->second] = true;
    for (const NvlinkEnd& end : known.links) {
      const auto to = places.find(end.bus_id);
      if (end.at == NvlinkEnd::At::kSwitch) {
        ++wires.to_switch[from->second];
      } else if (to != places.end()) {
        ++wires.to_device[from->second][to->second];
      } else {
        ++elsewhere;
      }
    }
  }
  for (size_t device = 0; device < devices.size(); ++device) {
    if (shown[device]) continue;
    notes->push_back(absl::StrCat("NVML does not show ", DeviceName(device), " (",
                                  devices[device].bus_id, "); its links are not known"));
  }
  if (elsewhere > 0) {
    notes->push_back(absl::StrCat(elsewhere,
                                  " NVLinks end at devices that CUDA does not show here "
                                  "(CUDA_VISIBLE_DEVICES)"));
  }
  return wires;
}

void TakeFabric(const Wires& wires, ServerFacts* facts) {
  const std::vector<int64_t>& up = wires.to_switch;
  const auto [fewest, most] = absl::c_minmax_element(up);
  facts->keys.copy_engines = CopyEngines::kOneForAllPeers;
  const bool some_have_none = *fewest == 0;
  if (some_have_none) {
    std::vector<std::vector<int64_t>>& pairs = facts->keys.wires;
    pairs.assign(up.size(), std::vector<int64_t>(up.size()));
    for (size_t from = 0; from < up.size(); ++from) {
      for (size_t to = 0; to < up.size(); ++to) {
        if (from != to) pairs[from][to] = std::min(up[from], up[to]);
      }
    }
  } else {
    facts->keys.fabric_wires = *fewest;
  }
  if (*fewest == *most) return;
  for (size_t device = 0; device < up.size(); ++device) {
    if (up[device] == *most) continue;
    facts->notes.push_back(absl::StrCat(
        "warning: ", DeviceName(device), " has ", up[device], " of ", *most,
        " NVLinks to the switches up",
        some_have_none ? "" : absl::StrCat("; every device is taken to have ", *fewest)));
  }
}

// A wire runs both ways; where the ends do not agree, the fewer count.
void TakeDirect(Wires wires, ServerFacts* facts) {
  bool has_wires = false;
  for (size_t from = 0; from < wires.to_device.size(); ++from) {
    for (size_t to = 0; to < from; ++to) {
      int64_t& here = wires.to_device[from][to];
      int64_t& there = wires.to_device[to][from];
      if (here != there) {
        facts->notes.push_back(absl::StrCat("warning: ", DeviceName(to), " has ", there,
                                            " NVLinks to ", DeviceName(from), ", which has ", here,
                                            " back"));
      }
      here = there = std::min(here, there);
      has_wires = has_wires || here > 0;
    }
  }
  if (has_wires) facts->keys.wires = std::move(wires.to_device);
}

void TakePlaces(const std::vector<CudaDeviceInfo>& devices, ServerFacts* facts) {
  TopologyKeys& keys = facts->keys;
  facts->shared_bridges = SharedBridges(facts->places);
  keys.pcie_paths = PciePathsBetween(facts->places);
  keys.switches.resize(static_cast<size_t>(*absl::c_max_element(facts->shared_bridges)) + 1);
  for (size_t device = 0; device < devices.size(); ++device) {
    PcieSwitch& one = keys.switches[static_cast<size_t>(facts->shared_bridges[device])];
    one.devices.emplace_back(static_cast<int>(device));
    if (facts->places[device].bridges.empty()) {
      facts->notes.push_back(absl::StrCat("sysfs does not show the way of ", DeviceName(device),
                                          " (", devices[device].bus_id,
                                          ") to the host; it is taken to be its own"));
    }
  }
  const bool knows_nodes =
      absl::c_all_of(facts->places, [](const PciePlace& place) { return place.numa.has_value(); });
  if (!knows_nodes) return;
  for (const PciePlace& place : facts->places) keys.numa.push_back(*place.numa);
}

// Devices of one server are of a kind; the least of each counts where they are not.
void TakeDevices(const std::vector<CudaDeviceInfo>& devices, ServerFacts* facts) {
  TopologyKeys& keys = facts->keys;
  const CudaDeviceInfo& first = devices.front();
  keys.devices = static_cast<int64_t>(devices.size());
  keys.name = absl::StrCat(devices.size(), " x ", first.name, ", measured");
  keys.device_memory = first.memory;
  for (size_t device = 1; device < devices.size(); ++device) {
    keys.device_memory = std::min(keys.device_memory, devices[device].memory);
    if (devices[device].name == first.name) continue;
    facts->notes.push_back(absl::StrCat("warning: ", DeviceName(device), " is a ",
                                        devices[device].name, ", ", DeviceName(0), " a ",
                                        first.name, "; all are planned for as the first"));
  }
  keys.device = DeviceKindOf(first.name, first.memory);
  if (keys.device.empty()) {
    facts->notes.push_back(absl::StrCat("how fast a ", first.name,
                                        " computes is not known; plan by a measured profile"));
  }
  std::optional<LinkGeneration> links =
      LinkGenerationOf(first.compute_major * 10 + first.compute_minor);
  const absl::StatusOr<LinkGeneration> by_name = FindLinkGeneration(keys.device);
  if (by_name.ok()) links = *by_name;
  const bool has_wires = keys.fabric_wires > 0 || !keys.wires.empty();
  if (links.has_value() && has_wires) keys.nominal_wire_rate = links->nominal;
}

std::vector<std::string> WordsOf(absl::string_view name) {
  return absl::StrSplit(absl::AsciiStrToUpper(name), absl::ByAnyChar(" -_/"), absl::SkipEmpty());
}

// Whether a device's name has the words of a kind, one after the other: "GTX 1080 Ti" those of
// "GTX-1080Ti". A size behind a kind ("V100-32") is no part of its name.
bool IsNamed(const std::string& known, const std::vector<std::string>& words) {
  std::vector<std::string> parts = WordsOf(known);
  int size = 0;
  if (parts.size() > 1 && absl::SimpleAtoi(parts.back(), &size)) parts.pop_back();
  const std::string wanted = absl::StrJoin(parts, "");
  for (size_t first = 0; first < words.size(); ++first) {
    std::string joined;
    for (size_t at = first; at < words.size() && joined.size() < wanted.size(); ++at) {
      joined += words[at];
    }
    if (joined == wanted) return true;
  }
  return false;
}

}  // namespace

std::string DeviceKindOf(absl::string_view name, Bytes memory) {
  const std::vector<std::string> words = WordsOf(name);
  std::string kind;
  int64_t nearest = 0;
  for (const std::string& known : KnownDeviceSpecs()) {
    if (!IsNamed(known, words)) continue;
    const absl::StatusOr<DeviceSpec> spec = FindDeviceSpec(known);
    if (!spec.ok()) continue;
    const int64_t off = std::abs(spec->capacity.value - memory.value);
    if (kind.empty() || off < nearest) {
      kind = known;
      nearest = off;
    }
  }
  return kind;
}

ServerFacts CombineFacts(const std::vector<CudaDeviceInfo>& devices,
                         const std::optional<NvmlServer>& nvml, absl::string_view why,
                         std::vector<PciePlace> places) {
  ServerFacts facts{.places = std::move(places)};
  if (nvml.has_value()) {
    Wires wires = CountWires(devices, *nvml, &facts.notes);
    if (*absl::c_max_element(wires.to_switch) > 0) {
      TakeFabric(wires, &facts);
    } else {
      TakeDirect(std::move(wires), &facts);
    }
  } else {
    facts.notes.push_back(absl::StrCat(why, "; counts of NVLinks are not known, rates are"));
  }
  TakePlaces(devices, &facts);
  TakeDevices(devices, &facts);
  return facts;
}

}  // namespace siphon
