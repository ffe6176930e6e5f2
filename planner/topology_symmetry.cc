#include "planner/topology_symmetry.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "planner/status.h"

namespace siphon {
namespace {

// Comparisons for one answer: the group, or the next devices. The servers that exist need some
// thousands, 128 devices on one fabric a million.
constexpr int64_t kMostSteps = 5'000'000;

// Numbers 0, 1, .. for different values, in the order in which they come.
template <typename Value>
class Numbering {
 public:
  int operator()(Value value) {
    return numbers_.emplace(std::move(value), static_cast<int>(numbers_.size())).first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::map<Value, int> numbers_;
};

using Rates = std::vector<int64_t>;

Rates UplinkOf(const Topology& topology, DeviceId device) {
  const std::optional<int> index = SwitchOf(topology, device);
  if (!index.has_value()) return {};
  const PcieSwitch& uplink = topology.switches[*index];
  return {uplink.to_host.value, uplink.from_host.value, uplink.to_host_both.value,
          uplink.from_host_both.value, uplink.latency.value};
}

// Of the drive that the device uses, and whether it is of the device's own NUMA node.
Rates DriveFactsOf(const Topology& topology, DeviceId device) {
  if (topology.drives.empty()) return {};
  const NvmeDrive& drive = topology.drives[DriveOf(topology, device)];
  return {drive.capacity.value, drive.read.value, drive.write.value, drive.latency.value,
          drive.numa == topology.devices[device.value].numa ? 1 : 0};
}

// [device]: the drive that it uses, which its number among its neighbours chooses; 0 without any.
std::vector<int> UsedDrives(const Topology& topology) {
  std::vector<int> drives(topology.devices.size());
  if (topology.drives.empty()) return drives;
  for (int device = 0; device < DeviceCount(topology); ++device) {
    drives[device] = DriveOf(topology, DeviceId(device));
  }
  return drives;
}

// The least member of each family that renumberings join.
class Families {
 public:
  explicit Families(int size) : least_(size) { std::iota(least_.begin(), least_.end(), 0); }

  int Least(int member) const {
    while (least_[member] != member) member = least_[member];
    return member;
  }
  void Join(int a, int b) {
    const int one = Least(a);
    const int other = Least(b);
    least_[std::max(one, other)] = std::min(one, other);
  }
  int SizeOf(int member) const {
    int size = 0;
    for (int other = 0; other < static_cast<int>(least_.size()); ++other) {
      size += Least(other) == Least(member) ? 1 : 0;
    }
    return size;
  }

 private:
  std::vector<int> least_;
};

bool Keeps(const std::vector<DeviceId>& renumbering, absl::Span<const int> placed) {
  return std::all_of(placed.begin(), placed.end(),
                     [&](int device) { return renumbering[device].value == device; });
}

Families KnownFamilies(const std::vector<std::vector<DeviceId>>& generators,
                       absl::Span<const int> placed, int devices) {
  Families families(devices);
  for (const std::vector<DeviceId>& generator : generators) {
    if (!Keeps(generator, placed)) continue;
    for (int device = 0; device < devices; ++device) families.Join(device, generator[device].value);
  }
  return families;
}

}  // namespace

TopologySymmetry::TopologySymmetry(const Topology& topology, SymmetryScope scope)
    : devices_(DeviceCount(topology)), orbit_sizes_(devices_, 1) {
  Describe(topology, scope);
  RefineKinds();
  // From the end: what moves only later devices is known when an earlier one is looked at.
  std::vector<int> placed(devices_);
  std::iota(placed.begin(), placed.end(), 0);
  int64_t steps = 0;
  for (int device = devices_ - 1; device >= 0; --device) {
    placed.pop_back();
    orbit_sizes_[device] = Orbit(placed, device, steps);
  }
}

void TopologySymmetry::Describe(const Topology& topology, SymmetryScope scope) {
  const bool host = scope == SymmetryScope::kWithHost;
  Numbering<std::tuple<Rates, Rates, Rates>> kinds;
  Numbering<std::tuple<Rates, PcieDistance, bool, bool, bool>> ways;
  const std::vector<int> drives = UsedDrives(topology);
  std::map<std::pair<DeviceId, DeviceId>, Rates> links;
  for (const TopologyLink& link : topology.links) {
    links[{link.from, link.to}] = {link.rate.value, link.latency.value, link.wires};
  }
  way_.assign(devices_, std::vector<int>(devices_));
  for (int from = 0; from < devices_; ++from) {
    const TopologyDevice& device = topology.devices[from];
    kind_.push_back(kinds({{device.memory.value, device.egress.value, device.ingress.value},
                           host ? UplinkOf(topology, DeviceId(from)) : Rates{},
                           host ? DriveFactsOf(topology, DeviceId(from)) : Rates{}}));
    for (int to = 0; to < devices_; ++to) {
      const auto link = links.find({DeviceId(from), DeviceId(to)});
      // A switch may reach over NUMA nodes, so both count.
      way_[from][to] =
          ways({link == links.end() ? Rates{} : link->second,
                host ? PcieDistanceBetween(topology, DeviceId(from), DeviceId(to))
                     : PcieDistance::kOtherNuma,
                host && device.numa == topology.devices[to].numa,
                host && drives[from] == drives[to], device.server == topology.devices[to].server});
    }
  }
}

// Devices differ if they have different ways to different kinds, until nothing new comes of it.
void TopologySymmetry::RefineKinds() {
  size_t known = 0;
  while (true) {
    Numbering<std::pair<int, std::vector<std::tuple<int, int, int>>>> numbering;
    std::vector<int> refined(devices_);
    for (int device = 0; device < devices_; ++device) {
      std::vector<std::tuple<int, int, int>> around;
      for (int other = 0; other < devices_; ++other) {
        around.emplace_back(way_[device][other], way_[other][device], kind_[other]);
      }
      std::sort(around.begin(), around.end());
      refined[device] = numbering({kind_[device], std::move(around)});
    }
    kind_ = std::move(refined);
    if (numbering.size() == known) return;
    known = numbering.size();
  }
}

bool TopologySymmetry::Agrees(absl::Span<const int> image, int device, int candidate) const {
  if (kind_[device] != kind_[candidate]) return false;
  for (int other = 0; other < devices_; ++other) {
    const int to = image[other];
    if (to < 0) continue;
    if (to == candidate || way_[device][other] != way_[candidate][to] ||
        way_[other][device] != way_[to][candidate]) {
      return false;
    }
  }
  return true;
}

TopologySymmetry::Found TopologySymmetry::Complete(absl::Span<const int> order, int placed,
                                                   std::vector<int>& image, int64_t& steps) const {
  if (placed == devices_) return Found::kYes;
  const int device = order[placed];
  for (int candidate = 0; candidate < devices_; ++candidate) {
    if (++steps > kMostSteps) return Found::kGaveUp;
    if (!Agrees(image, device, candidate)) continue;
    image[device] = candidate;
    const Found found = Complete(order, placed + 1, image, steps);
    if (found != Found::kNo) return found;
    image[device] = -1;
  }
  return Found::kNo;
}

TopologySymmetry::Found TopologySymmetry::FindMoving(absl::Span<const int> placed, int from, int to,
                                                     std::vector<int>& image,
                                                     int64_t& steps) const {
  image.assign(devices_, -1);
  std::vector<int> order(placed.begin(), placed.end());
  for (const int device : placed) image[device] = device;
  if (!Agrees(image, from, to)) return Found::kNo;
  image[from] = to;
  order.push_back(from);
  const auto fixed = static_cast<int>(order.size());
  for (int device = 0; device < devices_; ++device) {
    if (image[device] < 0) order.push_back(device);
  }
  return Complete(order, fixed, image, steps);
}

int TopologySymmetry::Orbit(absl::Span<const int> placed, int from, int64_t& steps) {
  Families families = KnownFamilies(generators_, placed, devices_);
  std::vector<bool> refused(devices_);  // families that `from` cannot become
  for (int to = from + 1; to < devices_; ++to) {
    if (families.Least(to) == families.Least(from) || refused[families.Least(to)]) continue;
    std::vector<int> image;
    const Found found = FindMoving(placed, from, to, image, steps);
    exact_ = exact_ && found != Found::kGaveUp;
    if (found != Found::kYes) {
      refused[families.Least(to)] = true;
      continue;
    }
    std::vector<DeviceId> generator;
    for (int device = 0; device < devices_; ++device) {
      generator.emplace_back(image[device]);
      families.Join(device, image[device]);
    }
    generators_.push_back(std::move(generator));
  }
  return families.SizeOf(from);
}

std::optional<absl::uint128> TopologySymmetry::GroupSize() const {
  absl::uint128 size = 1;
  for (const int orbit : orbit_sizes_) {
    if (size > std::numeric_limits<absl::uint128>::max() / orbit) return std::nullopt;
    size *= orbit;
  }
  return size;
}

std::optional<absl::uint128> TopologySymmetry::DistinctMaps() const {
  const std::optional<absl::uint128> group = GroupSize();
  absl::uint128 maps = 1;
  for (int factor = 2; factor <= devices_; ++factor) {
    if (maps > std::numeric_limits<absl::uint128>::max() / factor) return std::nullopt;
    maps *= factor;
  }
  if (!group.has_value()) return std::nullopt;
  return maps / *group;
}

std::vector<DeviceId> TopologySymmetry::NextDevices(absl::Span<const DeviceId> placed) const {
  std::vector<int> kept;
  std::vector<bool> is_placed(devices_);
  for (const DeviceId device : placed) {
    SIPHON_CHECK(device.value >= 0 && device.value < devices_ && !is_placed[device.value],
                 "placed devices exist and differ");
    is_placed[device.value] = true;
    kept.push_back(device.value);
  }
  Families families = KnownFamilies(generators_, kept, devices_);
  std::vector<DeviceId> next;
  int64_t steps = 0;
  for (int device = 0; device < devices_; ++device) {
    if (is_placed[device] || families.Least(device) != device) continue;
    const bool is_new = std::none_of(next.begin(), next.end(), [&](DeviceId other) {
      std::vector<int> image;
      return FindMoving(kept, other.value, device, image, steps) == Found::kYes;
    });
    if (is_new) next.emplace_back(device);
  }
  return next;
}

}  // namespace siphon
