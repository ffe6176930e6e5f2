#include "planner/simulator/graph/step_resources.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::string_view ChannelName(MessageChannel channel) {
  switch (channel) {
    case MessageChannel::kForward:
      return "forward";
    case MessageChannel::kBackward:
      return "backward";
    case MessageChannel::kGradients:
      return "gradients";
  }
  return "unknown channel";
}

}  // namespace

StepResources::StepResources(const Topology& topology, const TransportCosts& transport,
                             const std::vector<DeviceId>& device_of_worker, TaskGraph& graph)
    : topology_(topology),
      transport_(transport),
      device_of_worker_(device_of_worker),
      graph_(graph),
      switch_of_(topology.devices.size(), -1),
      egress_(topology.devices.size()),
      ingress_(topology.devices.size()) {
  for (size_t worker = 0; worker < device_of_worker.size(); ++worker) {
    compute_lanes_.push_back(graph_.AddLane());
    lane_names_.emplace_back();
  }
  AddUplinks();
  AddLinks();
  AddDrives();
}

void StepResources::AddUplinks() {
  if (topology_.devices.empty()) {
    to_host_.push_back(graph_.AddCapacity("to host", transport_.host_rate));
    from_host_.push_back(graph_.AddCapacity("from host", transport_.host_rate));
    return;
  }
  for (size_t index = 0; index < topology_.switches.size(); ++index) {
    const PcieSwitch& uplink = topology_.switches[index];
    for (const DeviceId device : uplink.devices) switch_of_[device.value] = static_cast<int>(index);
    to_host_.push_back(
        graph_.AddCapacity(absl::StrCat("to host of switch ", index), uplink.to_host));
    from_host_.push_back(
        graph_.AddCapacity(absl::StrCat("from host of switch ", index), uplink.from_host));
    graph_.JoinDirections(to_host_.back(), uplink.to_host_both, from_host_.back(),
                          uplink.from_host_both);
  }
}

void StepResources::AddLinks() {
  for (size_t device = 0; device < topology_.devices.size(); ++device) {
    const TopologyDevice& caps = topology_.devices[device];
    if (caps.egress.value > 0) {
      egress_[device] = graph_.AddCapacity(absl::StrCat("egress of device ", device), caps.egress);
    }
    if (caps.ingress.value > 0) {
      ingress_[device] =
          graph_.AddCapacity(absl::StrCat("ingress of device ", device), caps.ingress);
    }
  }
  for (const TopologyLink& link : topology_.links) {
    std::vector<CapacityId> capacities{graph_.AddCapacity(
        absl::StrCat("device ", link.from.value, " to device ", link.to.value), link.rate)};
    if (const auto& egress = egress_[link.from.value]) capacities.push_back(*egress);
    if (const auto& ingress = ingress_[link.to.value]) capacities.push_back(*ingress);
    links_[{link.from, link.to}] = {graph_.AddPath(std::move(capacities)), link.latency};
  }
}

void StepResources::AddDrives() {
  for (size_t drive = 0; drive < topology_.drives.size(); ++drive) {
    const NvmeDrive& facts = topology_.drives[drive];
    drive_write_.push_back(graph_.AddCapacity(absl::StrCat("write to drive ", drive), facts.write));
    drive_read_.push_back(graph_.AddCapacity(absl::StrCat("read from drive ", drive), facts.read));
  }
}

LaneId StepResources::NamedLane(const std::string& name) {
  const auto [found, added] = named_lanes_.try_emplace(name);
  if (added) {
    found->second = graph_.AddLane();
    lane_names_.push_back(name);
  }
  return found->second;
}

absl::StatusOr<int> StepResources::FindSwitch(DeviceId device) const {
  if (const int found = switch_of_[device.value]; found >= 0) return found;
  return absl::InvalidArgumentError(absl::StrCat(
      "device ", device.value, " has no way to the host: it is behind no switch of the topology"));
}

absl::StatusOr<StepResources::Way> StepResources::BetweenDevices(DeviceId from, DeviceId to) {
  if (const auto found = links_.find({from, to}); found != links_.end()) return found->second;
  if (const auto found = through_host_.find({from, to}); found != through_host_.end()) {
    return found->second;
  }
  const int sender = ServerOf(topology_, from);
  const int receiver = ServerOf(topology_, to);
  if (sender != receiver) {
    return BetweenServers(sender, receiver);
  }
  const int first = switch_of_[from.value];
  const int second = switch_of_[to.value];
  if (first < 0 || second < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no path from device ", from.value, " to device ", to.value,
                     ": no link, and device ", (first < 0 ? from : to).value,
                     " is behind no switch through which the host could be reached"));
  }
  const Way way{graph_.AddPath({to_host_[first], from_host_[second]}),
                topology_.switches[first].latency + topology_.switches[second].latency};
  through_host_[{from, to}] = way;
  return way;
}

StepResources::Way StepResources::BetweenServers(int from, int to) {
  const auto [found, added] = between_servers_.try_emplace({from, to});
  if (added) {
    const auto port = [this](int server, CopyDirection direction) {
      const auto [known, is_new] = ports_.try_emplace({server, direction});
      if (is_new) {
        const bool out = direction == CopyDirection::kOut;
        known->second = graph_.AddCapacity(
            absl::StrCat(out ? "out of server " : "into server ", server), topology_.network.rate);
      }
      return known->second;
    };
    found->second = {
        graph_.AddPath({port(from, CopyDirection::kOut), port(to, CopyDirection::kIn)}),
        topology_.network.latency};
  }
  return found->second;
}

StepResources::Way StepResources::BetweenWorkers(int from, int to) {
  const auto [found, added] = between_workers_.try_emplace({from, to});
  if (added) {
    const CapacityId capacity =
        graph_.AddCapacity(absl::StrCat("worker ", from, " to worker ", to), transport_.rate);
    found->second = {graph_.AddPath({capacity}), transport_.latency};
  }
  return found->second;
}

absl::StatusOr<Route> StepResources::Message(int from, int to, MessageChannel channel) {
  if (const auto found = messages_.find({from, to, channel}); found != messages_.end()) {
    return found->second;
  }
  Way way;
  if (topology_.devices.empty()) {
    way = BetweenWorkers(from, to);
  } else {
    SIPHON_ASSIGN_OR_RETURN(way, BetweenDevices(device_of_worker_[from], device_of_worker_[to]));
  }
  const Route route{
      NamedLane(absl::StrCat("worker ", from, " to worker ", to, ", ", ChannelName(channel))),
      way.path, way.latency};
  messages_[{from, to, channel}] = route;
  return route;
}

absl::StatusOr<StepResources::HostWay> StepResources::ToOrFromHost(int worker,
                                                                   CopyDirection direction) const {
  const std::vector<CapacityId>& uplinks = direction == CopyDirection::kOut ? to_host_ : from_host_;
  if (topology_.devices.empty()) return HostWay{uplinks.front(), transport_.latency};
  SIPHON_ASSIGN_OR_RETURN(const int uplink, FindSwitch(device_of_worker_[worker]));
  return HostWay{uplinks[uplink], topology_.switches[uplink].latency};
}

absl::StatusOr<Route> StepResources::HostCopy(int worker, CopyDirection direction) {
  if (const auto found = host_copies_.find({worker, direction}); found != host_copies_.end()) {
    return found->second;
  }
  SIPHON_ASSIGN_OR_RETURN(const HostWay way, ToOrFromHost(worker, direction));
  const bool out = direction == CopyDirection::kOut;
  const Route route{NamedLane(absl::StrCat("device ", device_of_worker_[worker].value,
                                           out ? ", copies to host" : ", copies from host")),
                    graph_.AddPath({way.capacity}), way.latency};
  host_copies_[{worker, direction}] = route;
  return route;
}

absl::StatusOr<Route> StepResources::ParametersFromHost(int worker) {
  SIPHON_ASSIGN_OR_RETURN(Route route, HostCopy(worker, CopyDirection::kIn));
  route.lane = NamedLane(
      absl::StrCat("device ", device_of_worker_[worker].value, ", new parameters from host"));
  return route;
}

absl::StatusOr<StepResources::Way> StepResources::BetweenPeers(int owner, DeviceId lender,
                                                               CopyDirection direction) {
  const DeviceId device = device_of_worker_[owner];
  const bool out = direction == CopyDirection::kOut;
  if (topology_.devices.empty()) {
    const auto found = std::find(device_of_worker_.begin(), device_of_worker_.end(), lender);
    const int worker = static_cast<int>(found - device_of_worker_.begin());
    if (found != device_of_worker_.end() && worker != owner) {
      return out ? BetweenWorkers(owner, worker) : BetweenWorkers(worker, owner);
    }
  } else if (0 <= lender.value && lender.value < DeviceCount(topology_) && lender != device) {
    if (ServerOf(topology_, lender) != ServerOf(topology_, device)) {
      return absl::InvalidArgumentError(absl::StrCat("device ", lender.value,
                                                     " cannot lend to device ", device.value,
                                                     ": it is in another server"));
    }
    return out ? BetweenDevices(device, lender) : BetweenDevices(lender, device);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device ", lender.value, " cannot lend to device ", device.value, ": lenders are ",
      topology_.devices.empty()
          ? std::string("the devices of other workers")
          : absl::StrCat("other devices of the topology, which has ", DeviceCount(topology_))));
}

absl::StatusOr<Route> StepResources::PeerCopy(int owner, DeviceId lender, CopyDirection direction) {
  const std::tuple key{owner, lender, direction};
  if (const auto found = peer_copies_.find(key); found != peer_copies_.end()) return found->second;
  SIPHON_ASSIGN_OR_RETURN(const Way way, BetweenPeers(owner, lender, direction));
  const DeviceId device = device_of_worker_[owner];
  const std::string engine =
      topology_.copy_engines == CopyEngines::kOneForAllPeers
          ? absl::StrCat("device ", device.value, ", copies to and from peers")
          : absl::StrCat("device ", device.value, ", copies to and from device ", lender.value);
  const Route route{NamedLane(engine), way.path, way.latency};
  peer_copies_[key] = route;
  return route;
}

LaneId StepResources::HostSteps(int worker) {
  const int server = ServerOf(topology_, device_of_worker_[worker]);
  const auto [found, added] = host_steps_.try_emplace(server);
  if (added) {
    found->second = graph_.AddQueue();
    lane_names_.push_back(ServerCount(topology_) == 1
                              ? std::string("optimizer steps on the host")
                              : absl::StrCat("optimizer steps on the host of server ", server));
  }
  return found->second;
}

absl::StatusOr<Route> StepResources::DriveCopy(int worker, CopyDirection direction) {
  if (const auto found = drive_copies_.find({worker, direction}); found != drive_copies_.end()) {
    return found->second;
  }
  SIPHON_ASSIGN_OR_RETURN(const HostWay way, ToOrFromHost(worker, direction));
  const int drive = DriveOf(topology_, device_of_worker_[worker]);
  const bool out = direction == CopyDirection::kOut;
  const CapacityId capacity = (out ? drive_write_ : drive_read_)[drive];
  const Route route{
      NamedLane(absl::StrCat("device ", device_of_worker_[worker].value,
                             out ? ", copies to drive " : ", copies from drive ", drive)),
      graph_.AddPath({way.capacity, capacity}), way.latency + topology_.drives[drive].latency};
  drive_copies_[{worker, direction}] = route;
  return route;
}

}  // namespace siphon
