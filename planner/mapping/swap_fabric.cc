#include "planner/mapping/swap_fabric.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"

namespace siphon {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kLongest = int64_t{1} << 62;

using Links = std::map<std::pair<DeviceId, DeviceId>, TopologyLink>;

Links LinksByPair(const Topology& topology) {
  Links links;
  for (const TopologyLink& link : topology.links) links[{link.from, link.to}] = link;
  return links;
}

// 0: they do not lend to each other this way.
int64_t PairRate(const Links& links, DeviceId owner, DeviceId lender, int64_t host_rate_left) {
  const auto out = links.find({owner, lender});
  const auto back = links.find({lender, owner});
  if (out == links.end() || back == links.end()) return 0;
  return LendingRate(out->second, back->second, host_rate_left);
}

}  // namespace

int64_t RateLimit(BytesPerSecond rate) {
  return rate.value == 0 ? SwapFabric::kUnlimited : rate.value;
}

int64_t SumOfRates(int64_t a, int64_t b) {
  return a > SwapFabric::kUnlimited - b ? SwapFabric::kUnlimited : a + b;
}

int64_t HostRateLeft(const Topology& topology, DeviceId device) {
  const std::optional<int> index = SwitchOf(topology, device);
  if (!index.has_value()) return 0;
  const PcieSwitch& uplink = topology.switches[*index];
  const int64_t rate = std::min(RateLimit(uplink.to_host), RateLimit(uplink.from_host));
  return rate == SwapFabric::kUnlimited ? 0 : rate / static_cast<int64_t>(uplink.devices.size());
}

int64_t LendingRate(const TopologyLink& out, const TopologyLink& back, int64_t host_rate_left) {
  const int64_t rate = std::min(RateLimit(out.rate), RateLimit(back.rate));
  const bool wired = out.wires > 0 && back.wires > 0;
  return wired || rate > host_rate_left ? rate : 0;
}

SwapFabric MakeSwapFabric(const Topology& topology) {
  const Links links = LinksByPair(topology);
  SwapFabric fabric;
  fabric.devices = DeviceCount(topology);
  fabric.engines = topology.copy_engines;
  for (int owner = 0; owner < fabric.devices; ++owner) {
    const TopologyDevice& device = topology.devices[owner];
    fabric.cap.push_back(std::min(RateLimit(device.egress), RateLimit(device.ingress)));
    fabric.memory.push_back(device.memory.value);
    const int64_t host_rate_left = HostRateLeft(topology, DeviceId(owner));
    std::vector<int64_t>& rates = fabric.rate.emplace_back();
    std::vector<int>& wires = fabric.wires.emplace_back();
    for (int lender = 0; lender < fabric.devices; ++lender) {
      rates.push_back(PairRate(links, DeviceId(owner), DeviceId(lender), host_rate_left));
      const bool lends = rates.back() > 0;
      wires.push_back(lends ? links.at({DeviceId(owner), DeviceId(lender)}).wires : 0);
    }
  }
  return fabric;
}

Topology LendingTopology(const Topology& topology) {
  const SwapFabric fabric = MakeSwapFabric(topology);
  Topology lending;
  lending.devices = topology.devices;
  lending.copy_engines = topology.copy_engines;
  for (const TopologyLink& link : topology.links) {
    const int64_t rate = fabric.rate[link.from.value][link.to.value];
    if (rate == 0) continue;
    lending.links.push_back({.from = link.from,
                             .to = link.to,
                             .rate = BytesPerSecond(rate == SwapFabric::kUnlimited ? 0 : rate),
                             .wires = link.wires});
  }
  return lending;
}

Nanos TransferTime(Bytes bytes, int64_t rate) {
  if (rate == SwapFabric::kUnlimited || bytes == Bytes(0)) return Nanos(0);
  const absl::uint128 work = absl::uint128(bytes.value) * kNanosPerSecond;
  const absl::uint128 time = (work + rate - 1) / rate;
  return Nanos(time > kLongest ? kLongest : static_cast<int64_t>(time));
}

}  // namespace siphon
