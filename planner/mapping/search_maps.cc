#include "planner/mapping/search_maps.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/mapping/parking_demand.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Devices = std::vector<DeviceId>;

// A map of the first workers, and what is known of its completions.
struct Part {
  Devices placed;
  MapCost bound;
  bool symmetric = true;  // some of the other devices may still be alike
};

// No completion of `a` is better than (cost, map) pairs before it.
bool IsBefore(const MapCost& cost_a, const Devices& a, const MapCost& cost_b, const Devices& b) {
  return std::tie(cost_a, a) < std::tie(cost_b, b);
}

bool IsAfter(const Part& a, const Part& b) {
  return IsBefore(b.bound, b.placed, a.bound, a.placed);
}

// One after the other.
class SingleMapCosts : public MapCosts {
 public:
  SingleMapCosts(ExactMapCost cost, MapBound bound) : cost_(cost), bound_(bound) {}

  absl::StatusOr<std::vector<MapCost>> Exact(absl::Span<const DeviceMapping> maps) override {
    std::vector<MapCost> costs;
    for (const DeviceMapping& map : maps) {
      SIPHON_ASSIGN_OR_RETURN(costs.emplace_back(), cost_(map));
    }
    return costs;
  }

  std::vector<MapCost> Bounds(absl::Span<const PlacedWorkers> placed) override {
    std::vector<MapCost> bounds;
    for (const auto& [devices, before] : placed) bounds.push_back(bound_(devices, before));
    return bounds;
  }

 private:
  ExactMapCost cost_;
  MapBound bound_;
};

class MapSearcher {
 public:
  MapSearcher(const Topology& topology, const MapSearch& search, MapCosts& costs)
      : search_(search),
        devices_(DeviceCount(topology)),
        symmetry_(topology, search.scope),
        costs_(costs) {}

  absl::StatusOr<FoundMap> Run() {
    for (const DeviceMapping& seed : search_.seeds) {
      SIPHON_RETURN_IF_ERROR(Evaluate({seed}).status());
    }
    SIPHON_RETURN_IF_ERROR(Descend());
    if (CanImprove()) SIPHON_RETURN_IF_ERROR(Exchange(search_.most_evaluations / 2));
    while (CanImprove()) {
      if (found_.parts >= search_.most_parts || found_.evaluations >= search_.most_evaluations) {
        SIPHON_RETURN_IF_ERROR(Exchange(search_.most_evaluations));
        found_.bound = std::min(found_.cost, open_.front().bound);
        return found_;
      }
      SIPHON_RETURN_IF_ERROR(LookAtBest());
    }
    found_.bound = found_.cost;
    found_.proven = true;
    return found_;
  }

 private:
  bool IsWhole(const Part& part) const {
    return static_cast<int>(part.placed.size()) == search_.workers;
  }

  // May one of its completions be better than what is found?
  bool MayImprove(const Part& part) const {
    return IsBefore(part.bound, part.placed, found_.cost, found_.mapping.device_of_worker);
  }

  bool CanImprove() const { return !open_.empty() && MayImprove(open_.front()); }

  void Keep(Part part) {
    if (found_.evaluations > 0 && !MayImprove(part)) return;
    open_.push_back(std::move(part));
    std::push_heap(open_.begin(), open_.end(), IsAfter);
  }

  // Those whose turn it is: of whole ones the exact costs, of others their extensions.
  absl::Status LookAtBest() {
    std::vector<DeviceMapping> whole;
    std::vector<Part> extensions;
    for (int taken = 0; taken < search_.at_once && CanImprove(); ++taken) {
      if (IsWhole(open_.front()) &&
          found_.evaluations + static_cast<int64_t>(whole.size()) >= search_.most_evaluations) {
        break;
      }
      std::pop_heap(open_.begin(), open_.end(), IsAfter);
      Part part = std::move(open_.back());
      open_.pop_back();
      if (IsWhole(part)) {
        whole.push_back({std::move(part.placed)});
      } else {
        AddExtensions(part, extensions);
      }
    }
    SIPHON_RETURN_IF_ERROR(Evaluate(std::move(whole)).status());
    Bound(extensions);
    for (Part& extension : extensions) Keep(std::move(extension));
    return absl::OkStatus();
  }

  // With one worker more, or, of a search for all maps, two where the last one has no choice; their
  // bounds are that of the part.
  void AddExtensions(const Part& part, std::vector<Part>& extensions) {
    Devices next;
    if (part.symmetric) {
      next = symmetry_.NextDevices(part.placed);
    } else {
      std::vector<bool> taken(devices_);
      for (const DeviceId device : part.placed) taken[device.value] = true;
      for (int device = 0; device < devices_; ++device) {
        if (!taken[device]) next.emplace_back(device);
      }
    }
    const bool symmetric = next.size() + part.placed.size() < static_cast<size_t>(devices_);
    for (const DeviceId device : next) {
      Part& extension = extensions.emplace_back(part);
      extension.placed.push_back(device);
      extension.symmetric = symmetric;
      const bool one_is_left = extension.placed.size() + 1 == static_cast<size_t>(devices_);
      if (search_.at_once > 1 && one_is_left && !IsWhole(extension)) {
        extension.placed.push_back(OnlyFreeDevice(extension.placed));
      }
    }
  }

  DeviceId OnlyFreeDevice(const Devices& placed) const {
    int device = devices_ * (devices_ - 1) / 2;  // 0 + 1 + ...
    for (const DeviceId taken : placed) device -= taken.value;
    return DeviceId(device);
  }

  // Raises the bounds to what is known of the parts themselves.
  void Bound(std::vector<Part>& parts) {
    std::vector<PlacedWorkers> placed;
    for (const Part& part : parts) placed.push_back({part.placed, part.bound});
    const std::vector<MapCost> bounds = costs_.Bounds(placed);
    for (size_t index = 0; index < parts.size(); ++index) {
      parts[index].bound = std::max(parts[index].bound, bounds[index]);
    }
    found_.parts += static_cast<int64_t>(parts.size());
  }

  // Always on by the extension with the least bound; the others stay open.
  absl::Status Descend() {
    Part part{.bound = costs_.Bounds({{{}, {.wires = kMostWires}}}).front()};
    while (!IsWhole(part)) {
      std::vector<Part> extensions;
      AddExtensions(part, extensions);
      Bound(extensions);
      const auto best = std::max_element(extensions.begin(), extensions.end(), IsAfter);
      part = std::move(*best);
      extensions.erase(best);
      for (Part& other : extensions) Keep(std::move(other));
    }
    return Evaluate({{part.placed}}).status();
  }

  // Is one of them better than what was found?
  absl::StatusOr<bool> Evaluate(std::vector<DeviceMapping> maps) {
    SIPHON_ASSIGN_OR_RETURN(const std::vector<MapCost> costs, costs_.Exact(maps));
    bool better = false;
    for (size_t index = 0; index < maps.size(); ++index) {
      const Devices& devices = maps[index].device_of_worker;
      const bool is_better = found_.evaluations == 0 || IsBefore(costs[index], devices, found_.cost,
                                                                 found_.mapping.device_of_worker);
      ++found_.evaluations;
      if (!is_better) continue;
      found_.cost = costs[index];
      found_.mapping = std::move(maps[index]);
      better = true;
    }
    return better;
  }

  // Whether a whole map is; asks for its cost only where its bound lets it be.
  absl::StatusOr<bool> Improves(const Devices& devices) {
    std::vector<Part> whole = {{.placed = devices, .bound = {.wires = kMostWires}}};
    Bound(whole);
    if (!MayImprove(whole.front())) return false;
    return Evaluate({{devices}});
  }

  // Two workers change places, or one goes to a device without a worker, until nothing helps or so
  // many maps were asked for.
  absl::Status Exchange(int64_t most_evaluations) {
    bool better = found_.mapping != exchanged_;
    while (better) {
      better = false;
      Devices places = found_.mapping.device_of_worker;  // then those without a worker
      for (int device = 0; device < devices_; ++device) {
        if (std::find(places.begin(), places.end(), DeviceId(device)) == places.end()) {
          places.emplace_back(device);
        }
      }
      for (int worker = 0; worker < search_.workers; ++worker) {
        for (int other = worker + 1; other < devices_; ++other) {
          if (found_.evaluations >= most_evaluations) return absl::OkStatus();
          std::swap(places[worker], places[other]);
          const Devices changed(places.begin(), places.begin() + search_.workers);
          SIPHON_ASSIGN_OR_RETURN(const bool helps, Improves(changed));
          if (!helps) std::swap(places[worker], places[other]);
          better = better || helps;
        }
      }
    }
    exchanged_ = found_.mapping;
    return absl::OkStatus();
  }

  // More than any topology has.
  static constexpr int kMostWires = 1 << 30;

  const MapSearch& search_;
  int devices_;
  TopologySymmetry symmetry_;
  MapCosts& costs_;
  FoundMap found_;
  DeviceMapping exchanged_;  // no exchange makes it better
  std::vector<Part> open_;   // a heap, the least on top
};

}  // namespace

std::strong_ordering operator<=>(const MapCost& a, const MapCost& b) {
  return std::tie(a.missing, a.time, a.unlinked, b.wires) <=>
         std::tie(b.missing, b.time, b.unlinked, a.wires);
}

absl::StatusOr<FoundMap> SearchMaps(const Topology& topology, const MapSearch& search,
                                    MapCosts& costs) {
  if (search.workers < 0 || search.workers > DeviceCount(topology)) {
    return absl::InvalidArgumentError(absl::StrCat(search.workers,
                                                   " workers need as many devices; ",
                                                   "the topology has ", DeviceCount(topology)));
  }
  for (const DeviceMapping& seed : search.seeds) {
    SIPHON_RETURN_IF_ERROR(CheckMapping(seed, search.workers, topology));
  }
  return MapSearcher(topology, search, costs).Run();
}

absl::StatusOr<FoundMap> SearchMaps(const Topology& topology, const MapSearch& search,
                                    ExactMapCost cost, MapBound bound) {
  SingleMapCosts costs(cost, bound);
  return SearchMaps(topology, search, costs);
}

}  // namespace siphon
