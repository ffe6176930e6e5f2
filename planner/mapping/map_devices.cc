#include "planner/mapping/map_devices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/mapping/parking_bound.h"
#include "planner/mapping/parking_flow.h"
#include "planner/status.h"

namespace siphon {

std::vector<Neighbours> PipelineNeighbours(int workers_per_replica, int replicas) {
  std::vector<Neighbours> neighbours;
  for (int replica = 0; replica < replicas; ++replica) {
    const int first = replica * workers_per_replica;
    for (int worker = first; worker + 1 < first + workers_per_replica; ++worker) {
      neighbours.push_back({WorkerId(worker), WorkerId(worker + 1)});
    }
  }
  return neighbours;
}

NeighbourLinks::NeighbourLinks(const SwapFabric& fabric, std::vector<Neighbours> neighbours)
    : fabric_(fabric), neighbours_(std::move(neighbours)) {
  for (int a = 0; a < fabric.devices; ++a) {
    for (int b = 0; b < fabric.devices; ++b) {
      any_linked_ = any_linked_ || fabric.Linked(a, b);
      most_wires_ = std::max(most_wires_, fabric.wires[a][b]);
    }
  }
}

void NeighbourLinks::Fill(absl::Span<const DeviceId> placed, MapCost& cost) const {
  std::vector<bool> taken(fabric_.devices);
  for (const DeviceId device : placed) taken[device.value] = true;
  cost.unlinked = 0;
  cost.wires = 0;
  for (Neighbours pair : neighbours_) {
    if (pair.b < pair.a) std::swap(pair.a, pair.b);
    const auto known = static_cast<int>(placed.size());
    bool linked = any_linked_;
    int wires = most_wires_;
    if (pair.b.value < known) {
      const int a = placed[pair.a.value].value;
      const int b = placed[pair.b.value].value;
      linked = fabric_.Linked(a, b);
      wires = fabric_.wires[a][b];
    } else if (pair.a.value < known) {
      const int a = placed[pair.a.value].value;
      linked = false;
      wires = 0;
      for (int b = 0; b < fabric_.devices; ++b) {
        if (taken[b]) continue;
        linked = linked || fabric_.Linked(a, b);
        wires = std::max(wires, fabric_.wires[a][b]);
      }
    }
    cost.unlinked += linked ? 0 : 1;
    cost.wires += wires;
  }
}

absl::StatusOr<FoundMap> MapDevices(const Topology& topology, const DeviceMapRequest& request) {
  SIPHON_RETURN_IF_ERROR(CheckParkingDemand(request.demand, topology));
  const auto workers = static_cast<int>(request.demand.workers.size());
  for (const auto& [a, b] : request.neighbours) {
    if (std::min(a, b).value < 0 || std::max(a, b).value >= workers) {
      return absl::InvalidArgumentError(absl::StrCat("neighbours ", a.value, " and ", b.value,
                                                     ": workers are 0 to ", workers - 1));
    }
  }
  const SwapFabric fabric = MakeSwapFabric(topology);
  const NeighbourLinks links(fabric, request.neighbours);
  const ParkingBound parking_bound(fabric, request.demand);
  const auto cost = [&](const DeviceMapping& mapping) -> absl::StatusOr<MapCost> {
    const ParkingTime parking = LeastParkingTime(fabric, mapping, request.demand);
    MapCost exact{parking.unparked, parking.time};
    links.Fill(mapping.device_of_worker, exact);
    return exact;
  };
  const auto bound = [&](absl::Span<const DeviceId> placed, const MapCost& before) {
    const ParkingTime parking = parking_bound.Of(placed, {before.missing, before.time});
    MapCost least{parking.unparked, parking.time};
    links.Fill(placed, least);
    return least;
  };
  const MapSearch search{.workers = workers,
                         .scope = SymmetryScope::kDevicesAndLinks,
                         .most_parts = request.most_parts,
                         .most_evaluations = request.most_parts};
  return SearchMaps(LendingTopology(topology), search, cost, bound);
}

}  // namespace siphon
