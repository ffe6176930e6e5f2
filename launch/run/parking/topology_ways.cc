#include "launch/run/parking/topology_ways.h"

#include <algorithm>
#include <cstddef>

namespace siphon {
namespace {

// Of two limits; 0 is none.
BytesPerSecond LowerLimit(BytesPerSecond a, BytesPerSecond b) {
  if (a.value == 0 || b.value == 0) return std::max(a, b);
  return std::min(a, b);
}

std::optional<LinkRoute> By(std::optional<LinkRoute> route, SharedWayId engine) {
  if (route.has_value()) route->over.push_back(engine);
  return route;
}

}  // namespace

TopologyWays::TopologyWays(const Topology& topology) : topology_(topology) {
  for (const PcieSwitch& uplink : topology_.switches) {
    const int up = static_cast<int>(ways_.size());
    ways_.push_back({uplink.to_host, uplink.to_host_both, up + 1});
    ways_.push_back({uplink.from_host, uplink.from_host_both, up});
  }
  first_device_ = static_cast<int>(ways_.size());
  for (const TopologyDevice& device : topology_.devices) {
    ways_.push_back({device.egress});
    ways_.push_back({device.ingress});
  }
  first_link_ = static_cast<int>(ways_.size());
  for (const TopologyLink& link : topology_.links) ways_.push_back({link.rate});
  first_drive_ = static_cast<int>(ways_.size());
  for (const NvmeDrive& drive : topology_.drives) {
    ways_.push_back({drive.write});
    ways_.push_back({drive.read});
  }
  first_engine_ = static_cast<int>(ways_.size());
  AddEngines();
}

// As fast as the fastest route that it is for: one copy at a time takes no longer by its engine.
void TopologyWays::AddEngines() {
  const int devices = DeviceCount(topology_);
  const bool for_all = topology_.copy_engines == CopyEngines::kOneForAllPeers;
  ways_.resize(first_engine_ + devices * (for_all ? 1 : devices));
  for (int owner = 0; owner < devices; ++owner) {
    for (int lender = 0; lender < devices; ++lender) {
      SharedWay& engine = ways_[Engine(DeviceId(owner), DeviceId(lender)).value];
      if (owner == lender) continue;
      for (const auto& route : {Between(DeviceId(owner), DeviceId(lender)),
                                Between(DeviceId(lender), DeviceId(owner))}) {
        if (route.has_value()) engine.rate = std::max(engine.rate, route->speed.rate);
      }
    }
  }
}

SharedWayId TopologyWays::Engine(DeviceId owner, DeviceId lender) const {
  if (topology_.copy_engines == CopyEngines::kOneForAllPeers) {
    return SharedWayId(first_engine_ + owner.value);
  }
  return SharedWayId(first_engine_ + owner.value * DeviceCount(topology_) + lender.value);
}

std::optional<LinkRoute> TopologyWays::Between(DeviceId from, DeviceId to) const {
  for (size_t index = 0; index < topology_.links.size(); ++index) {
    const TopologyLink& link = topology_.links[index];
    if (link.from != from || link.to != to) continue;
    return LinkRoute{{link.rate, link.latency},
                     {SharedWayId(first_link_ + static_cast<int>(index)),
                      SharedWayId(first_device_ + 2 * from.value),
                      SharedWayId(first_device_ + 2 * to.value + 1)}};
  }
  if (ServerOf(topology_, from) != ServerOf(topology_, to)) return std::nullopt;
  const std::optional<LinkRoute> out = ToHost(from);
  const std::optional<LinkRoute> in = FromHost(to);
  if (!out.has_value() || !in.has_value()) return std::nullopt;
  return LinkRoute{
      {LowerLimit(out->speed.rate, in->speed.rate), out->speed.latency + in->speed.latency},
      {out->over[0], in->over[0]}};
}

std::optional<LinkRoute> TopologyWays::ToHost(DeviceId device) const {
  const std::optional<int> index = SwitchOf(topology_, device);
  if (!index.has_value()) return std::nullopt;
  const PcieSwitch& uplink = topology_.switches[*index];
  return LinkRoute{{uplink.to_host, uplink.latency}, {SharedWayId(2 * *index)}};
}

std::optional<LinkRoute> TopologyWays::FromHost(DeviceId device) const {
  const std::optional<int> index = SwitchOf(topology_, device);
  if (!index.has_value()) return std::nullopt;
  const PcieSwitch& uplink = topology_.switches[*index];
  return LinkRoute{{uplink.from_host, uplink.latency}, {SharedWayId(2 * *index + 1)}};
}

// Through the host, where there is a way to it.
std::optional<LinkRoute> TopologyWays::WithDrive(std::optional<LinkRoute> host, DeviceId device,
                                                 BytesPerSecond NvmeDrive::*rate,
                                                 int direction) const {
  if (topology_.drives.empty()) return std::nullopt;
  const int index = DriveOf(topology_, device);
  const NvmeDrive& drive = topology_.drives[index];
  LinkRoute route = host.value_or(LinkRoute());
  route.speed.rate = LowerLimit(route.speed.rate, drive.*rate);
  route.speed.latency += drive.latency;
  route.over.push_back(SharedWayId(first_drive_ + 2 * index + direction));
  return route;
}

std::optional<LinkRoute> TopologyWays::ToDrive(DeviceId device) const {
  return WithDrive(ToHost(device), device, &NvmeDrive::write, 0);
}

std::optional<LinkRoute> TopologyWays::FromDrive(DeviceId device) const {
  return WithDrive(FromHost(device), device, &NvmeDrive::read, 1);
}

std::optional<LinkRoute> TopologyWays::ToLender(DeviceId owner, DeviceId lender) const {
  return By(Between(owner, lender), Engine(owner, lender));
}

std::optional<LinkRoute> TopologyWays::FromLender(DeviceId owner, DeviceId lender) const {
  return By(Between(lender, owner), Engine(owner, lender));
}

int TopologyWays::DevicesAtUplink(DeviceId device) const {
  const std::optional<int> index = SwitchOf(topology_, device);
  return index.has_value() ? static_cast<int>(topology_.switches[*index].devices.size()) : 0;
}

}  // namespace siphon
