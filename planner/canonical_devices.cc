#include "planner/canonical_devices.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/status.h"
#include "planner/topology_symmetry.h"

namespace siphon {
namespace {

// Beginnings of orders that describe the same so far and that no symmetry is known to join. Servers
// have a few; where a made-up mesh has more, its last ones are not looked at.
constexpr size_t kMostBeginnings = 2'000;

// All rates and sizes of one device, or of one way between two. Compared number by number.
using Facts = std::vector<int64_t>;

Facts FactsOfDevice(const Topology& topology, DeviceId id) {
  const TopologyDevice& device = topology.devices[id.value];
  Facts facts = {device.memory.value, device.egress.value, device.ingress.value};
  const std::optional<int> index = SwitchOf(topology, id);
  if (index.has_value()) {
    const PcieSwitch& uplink = topology.switches[*index];
    facts.insert(facts.end(),
                 {uplink.to_host.value, uplink.from_host.value, uplink.to_host_both.value,
                  uplink.from_host_both.value, uplink.latency.value});
  }
  facts.push_back(
      -std::count_if(topology.drives.begin(), topology.drives.end(),
                     [&](const NvmeDrive& drive) { return drive.numa == device.numa; }));
  for (const NvmeDrive& drive : topology.drives) {
    if (drive.numa != device.numa) continue;
    facts.insert(facts.end(),
                 {drive.capacity.value, drive.read.value, drive.write.value, drive.latency.value});
  }
  return facts;
}

// Do several drives stand behind one node with several devices?
bool NumbersChooseDrives(const Topology& topology) {
  std::map<int, int> drives;
  for (const NvmeDrive& drive : topology.drives) ++drives[drive.numa];
  return topology.drives.size() > 1 && std::any_of(topology.devices.begin(), topology.devices.end(),
                                                   [&](const TopologyDevice& device) {
                                                     const auto own = drives.find(device.numa);
                                                     return own == drives.end() || own->second > 1;
                                                   });
}

class Describer {
 public:
  explicit Describer(const Topology& topology) : devices_(DeviceCount(topology)) {
    std::map<std::pair<DeviceId, DeviceId>, const TopologyLink*> links;
    for (const TopologyLink& link : topology.links) links[{link.from, link.to}] = &link;
    for (int from = 0; from < devices_; ++from) {
      facts_.push_back(FactsOfDevice(topology, DeviceId(from)));
      ways_.emplace_back();
      for (int to = 0; to < devices_; ++to) {
        const bool same_node = topology.devices[from].numa == topology.devices[to].numa;
        const auto found = links.find({DeviceId(from), DeviceId(to)});
        Facts way = {
            static_cast<int64_t>(PcieDistanceBetween(topology, DeviceId(from), DeviceId(to))),
            same_node ? 0 : 1, topology.devices[from].server == topology.devices[to].server ? 0 : 1,
            found == links.end() ? 1 : 0};
        if (found != links.end()) {
          const TopologyLink& link = *found->second;
          way.insert(way.end(), {link.rate.value, link.latency.value, link.wires});
        }
        ways_.back().push_back(std::move(way));
      }
    }
  }

  // What `next` adds to the description of an order that begins with `placed`.
  std::vector<Facts> Row(absl::Span<const DeviceId> placed, DeviceId next) const {
    std::vector<Facts> row = {facts_[next.value]};
    for (const DeviceId before : placed) {
      row.push_back(ways_[next.value][before.value]);
      row.push_back(ways_[before.value][next.value]);
    }
    return row;
  }

 private:
  const int devices_;
  std::vector<Facts> facts_;              // [device]
  std::vector<std::vector<Facts>> ways_;  // [from][to]
};

// NUMA nodes and servers in the order of their first devices.
void RenumberNodes(Topology& topology) {
  std::map<int, int> nodes, servers;
  const auto rename = [](int& node, std::map<int, int>& number) {
    node = number.try_emplace(node, static_cast<int>(number.size())).first->second;
  };
  for (TopologyDevice& device : topology.devices) {
    rename(device.numa, nodes);
    rename(device.server, servers);
  }
  for (NvmeDrive& drive : topology.drives) {
    rename(drive.numa, nodes);
    rename(drive.server, servers);
  }
}

std::vector<DeviceId> AsTheyAre(int devices) {
  std::vector<DeviceId> order;
  for (int device = 0; device < devices; ++device) order.emplace_back(device);
  return order;
}

}  // namespace

std::vector<DeviceId> CanonicalOrder(const Topology& topology) {
  const int devices = DeviceCount(topology);
  if (NumbersChooseDrives(topology)) return AsTheyAre(devices);
  const Describer describer(topology);
  const TopologySymmetry symmetry(topology);
  // All beginnings with the least description; their first one is the lexicographically least.
  std::vector<std::vector<DeviceId>> beginnings = {{}};
  for (int place = 0; place < devices; ++place) {
    std::vector<std::vector<DeviceId>> longer;
    std::optional<std::vector<Facts>> least;
    for (const std::vector<DeviceId>& placed : beginnings) {
      for (const DeviceId next : symmetry.NextDevices(placed)) {
        std::vector<Facts> row = describer.Row(placed, next);
        if (least.has_value() && *least < row) continue;
        if (!least.has_value() || row < *least) {
          least = std::move(row);
          longer.clear();
        }
        if (longer.size() == kMostBeginnings) continue;
        longer.push_back(placed);
        longer.back().push_back(next);
      }
    }
    beginnings = std::move(longer);
  }
  return beginnings.front();
}

Topology Renumbered(const Topology& topology, absl::Span<const DeviceId> order) {
  SIPHON_CHECK(order.size() == topology.devices.size(), "an order has each device once");
  Topology renumbered = topology;
  std::vector<DeviceId> number(order.size());
  for (size_t place = 0; place < order.size(); ++place) {
    number[order[place].value] = DeviceId(static_cast<int>(place));
    renumbered.devices[place] = topology.devices[order[place].value];
  }
  for (TopologyLink& link : renumbered.links) {
    link.from = number[link.from.value];
    link.to = number[link.to.value];
  }
  std::sort(renumbered.links.begin(), renumbered.links.end(),
            [](const TopologyLink& a, const TopologyLink& b) {
              return std::tie(a.from, a.to) < std::tie(b.from, b.to);
            });
  for (PcieSwitch& uplink : renumbered.switches) {
    for (DeviceId& device : uplink.devices) device = number[device.value];
    std::sort(uplink.devices.begin(), uplink.devices.end());
  }
  std::sort(renumbered.switches.begin(), renumbered.switches.end(),
            [](const PcieSwitch& a, const PcieSwitch& b) { return a.devices < b.devices; });
  RenumberNodes(renumbered);
  return renumbered;
}

}  // namespace siphon
