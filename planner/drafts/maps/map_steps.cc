#include "planner/drafts/maps/map_steps.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "planner/drafts/maps/shared_path.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/simulator/graph/step_resources.h"

namespace siphon {
namespace {

// Of a copy that shares the path with nobody, as fast as it can be.
int64_t AloneOn(const TaskGraph& graph, const std::vector<CapacityId>& path) {
  int64_t rate = SwapFabric::kUnlimited;
  for (const CapacityId id : path) {
    const SharedCapacity& capacity = graph.capacities()[id.value];
    rate = std::min(rate, std::max(RateLimit(capacity.rate), capacity.rate_both.value));
  }
  return rate;
}

}  // namespace

std::optional<MapSteps> MapSteps::Of(const PlanningProblem& problem, const DraftPlan& draft,
                                     const WayGraph& step) {
  const bool only_paths = !Uses(draft, Placement::kPeerSwap) && problem.cores.empty() &&
                          ServerCount(problem.topology) == 1;
  if (!only_paths) return std::nullopt;
  MapSteps steps(step.graph);
  if (!steps.AddWays(step) || !steps.AddRoutes(problem.topology)) return std::nullopt;
  steps.FindTails();
  return steps;
}

// False where copies take ways that no map gives a path.
bool MapSteps::AddWays(const WayGraph& step) {
  const int kinds = PrivateWays::kKinds;
  const int messages = step.ways.Free() - static_cast<int>(step.ways.messages().size());
  std::vector<int> place(static_cast<size_t>(step.ways.count()), -1);
  for (int task = 0; task < static_cast<int>(graph_.tasks().size()); ++task) {
    const std::optional<PathId>& path = graph_.tasks()[task].path;
    if (!path) continue;
    // To a drive it is by way of the host.
    const CapacityId last = graph_.paths()[path->value].back();
    const int number = PrivateWays::WayWithRate(graph_.capacities()[last.value].rate);
    if (number == step.ways.Free()) return false;
    if (place[number] < 0) {
      place[number] = static_cast<int>(ways_.size());
      Way& way = ways_.emplace_back();
      if (number >= messages) {
        std::tie(way.from, way.to) = step.ways.messages()[number - messages];
      } else {
        way.from = way.to = WorkerId(number / kinds);
        way.kind = static_cast<PrivateWays::Kind>(number % kinds);
        if (way.kind == PrivateWays::kParking) return false;
      }
    }
    ways_[place[number]].copies.emplace_back(task);
  }
  return true;
}

// False where one is missing that a map may need.
bool MapSteps::AddRoutes(const Topology& topology) {
  const int devices = DeviceCount(topology);
  const std::vector<DeviceId> all = IdentityMapping(devices).device_of_worker;
  const TransportCosts transport;
  StepResources resources(topology, transport, all, graph_);
  bool found_all = true;
  const auto add = [&found_all](const absl::StatusOr<siphon::Route>& found, Route& route) {
    found_all = found_all && found.ok();
    if (found.ok()) route = {found->path, found->latency};
  };
  device_routes_.assign(all.size(), std::vector<Route>(PrivateWays::kKinds));
  message_routes_.assign(all.size(), std::vector<Route>(all.size()));
  std::set<PrivateWays::Kind> kinds;
  bool has_messages = false;
  for (const Way& way : ways_) {
    if (way.from == way.to) {
      kinds.insert(way.kind);
    } else {
      has_messages = true;
    }
  }
  for (int device = 0; device < devices; ++device) {
    for (const PrivateWays::Kind kind : kinds) {
      const bool out = kind == PrivateWays::kToHost || kind == PrivateWays::kToDrive;
      const bool to_host = kind == PrivateWays::kToHost || kind == PrivateWays::kFromHost;
      const CopyDirection direction = out ? CopyDirection::kOut : CopyDirection::kIn;
      add(to_host ? resources.HostCopy(device, direction) : resources.DriveCopy(device, direction),
          device_routes_[device][kind]);
    }
    for (int other = 0; has_messages && other < devices; ++other) {
      if (other == device) continue;
      add(resources.Message(device, other, MessageChannel::kForward),
          message_routes_[device][other]);
    }
  }
  return found_all;
}

// With each copy on the best of its routes, alone there.
void MapSteps::FindTails() {
  std::vector<Nanos> durations;
  for (const Task& task : graph_.tasks()) durations.push_back(task.duration);
  for (const Way& way : ways_) {
    int64_t rate = 0;
    Nanos latency(std::numeric_limits<int64_t>::max());
    const auto add = [&](const Route& route) {
      if (route.path.value < 0) return;  // from a device to itself
      rate = std::max(rate, AloneOn(graph_, graph_.paths()[route.path.value]));
      latency = std::min(latency, route.latency);
    };
    for (size_t device = 0; device < device_routes_.size(); ++device) {
      if (way.from == way.to) {
        add(device_routes_[device][way.kind]);
      } else {
        for (const Route& route : message_routes_[device]) add(route);
      }
    }
    for (const TaskId copy : way.copies) {
      durations[copy.value] = latency + LeastCopyTime(graph_.tasks()[copy.value].bytes, rate);
    }
  }
  SharedPath path(graph_, {});
  path.Run(durations, durations, {});
  for (size_t task = 0; task < durations.size(); ++task) {
    tails_.push_back(durations[task] + path.tail()[task]);
  }
}

const MapSteps::Route& MapSteps::RouteOf(const Way& way, absl::Span<const DeviceId> map) const {
  const int from = map[way.from.value].value;
  return way.from == way.to ? device_routes_[from][way.kind]
                            : message_routes_[from][map[way.to.value].value];
}

std::optional<Nanos> MapSteps::StepWithin(absl::Span<const DeviceId> map, Nanos most) {
  for (const Way& way : ways_) {
    const auto& [path, latency] = RouteOf(way, map);
    for (const TaskId copy : way.copies) graph_.Reroute(copy, path, latency);
  }
  return clock_.EndWithin(graph_, most, tails_);
}

std::vector<int64_t> MapSteps::KeyOf(absl::Span<const DeviceId> map) const {
  std::vector<int64_t> key;
  std::vector<int> number(graph_.capacities().size(), -1);
  int numbers = 0;
  for (const Way& way : ways_) {
    const auto& [path, latency] = RouteOf(way, map);
    key.push_back(latency.value);
    for (const CapacityId id : graph_.paths()[path.value]) {
      if (number[id.value] < 0) {
        const SharedCapacity& capacity = graph_.capacities()[id.value];
        number[id.value] = numbers++;
        key.push_back(capacity.rate.value);
        key.push_back(capacity.rate_both.value);
        key.push_back(capacity.other_direction ? number[capacity.other_direction->value] : -1);
      }
      key.push_back(number[id.value]);
    }
    key.push_back(-1);
  }
  return key;
}

}  // namespace siphon
