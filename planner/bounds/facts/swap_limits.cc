#include "planner/bounds/facts/swap_limits.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

// As in a topology, where 0 is "no limit".
BytesPerSecond Limit(BytesPerSecond rate) {
  return rate.value == 0 ? kUnlimitedRate : std::min(rate, kUnlimitedRate);
}

BytesPerSecond Sum(BytesPerSecond a, BytesPerSecond b) {
  return std::min(kUnlimitedRate, BytesPerSecond(a.value + b.value));
}

UplinkRates RatesOf(const PcieSwitch& uplink) {
  const auto both = [](BytesPerSecond rate, BytesPerSecond alone) {
    return rate.value == 0 ? Limit(alone) : Limit(rate);
  };
  return {.out_alone = Limit(uplink.to_host),
          .in_alone = Limit(uplink.from_host),
          .out_both = both(uplink.to_host_both, uplink.to_host),
          .in_both = both(uplink.from_host_both, uplink.from_host)};
}

// A link, or the way through the host where there is none, or the network, as the simulator goes.
std::optional<MessageWay> WayBetween(const Topology& topology, DeviceId from, DeviceId to) {
  if (const std::optional<TopologyLink> link = FindLink(topology, from, to)) {
    return MessageWay{
        .latency = link->latency,
        .rate = std::min({Limit(link->rate), Limit(topology.devices[from.value].egress),
                          Limit(topology.devices[to.value].ingress)})};
  }
  if (ServerOf(topology, from) != ServerOf(topology, to)) {
    return MessageWay{.latency = topology.network.latency, .rate = Limit(topology.network.rate)};
  }
  const std::optional<int> first = SwitchOf(topology, from);
  const std::optional<int> second = SwitchOf(topology, to);
  if (!first.has_value() || !second.has_value()) return std::nullopt;
  const PcieSwitch& up = topology.switches[*first];
  const PcieSwitch& down = topology.switches[*second];
  return MessageWay{.latency = up.latency + down.latency,
                    .rate = std::min(FastestOut(RatesOf(up)), FastestIn(RatesOf(down)))};
}

// What is known of one device.
struct DeviceRates {
  BytesPerSecond out;
  BytesPerSecond in;
  UplinkRates uplink;
};

DeviceRates RatesOf(const Topology& topology, DeviceId device) {
  DeviceRates rates;
  const bool one_engine = topology.copy_engines == CopyEngines::kOneForAllPeers;
  const auto add = [one_engine](BytesPerSecond sum, BytesPerSecond rate) {
    return one_engine ? std::max(sum, rate) : Sum(sum, rate);
  };
  for (const TopologyLink& link : topology.links) {
    if (link.from == device) rates.out = add(rates.out, Limit(link.rate));
    if (link.to == device) rates.in = add(rates.in, Limit(link.rate));
  }
  rates.out = std::min(rates.out, Limit(topology.devices[device.value].egress));
  rates.in = std::min(rates.in, Limit(topology.devices[device.value].ingress));
  // Where there is a link one way only, the other way is through the host.
  for (const TopologyLink& link : topology.links) {
    if (link.from != device && link.to != device) continue;
    if (FindLink(topology, link.to, link.from).has_value()) continue;
    const std::optional<MessageWay> back = WayBetween(topology, link.to, link.from);
    if (!back.has_value()) continue;
    BytesPerSecond& rate = link.from == device ? rates.in : rates.out;
    rate = add(rate, back->rate);
  }
  if (const std::optional<int> index = SwitchOf(topology, device)) {
    rates.uplink = RatesOf(topology.switches[*index]);
  }
  return rates;
}

// Every worker may be on any device.
SwapLimits OnAnyDevice(const Topology& topology, int workers) {
  DeviceRates best;
  std::vector<Bytes> memory;
  std::vector<MessageWay> ways;
  for (int device = 0; device < DeviceCount(topology); ++device) {
    const DeviceRates rates = RatesOf(topology, DeviceId(device));
    best.out = std::max(best.out, rates.out);
    best.in = std::max(best.in, rates.in);
    best.uplink = Better(best.uplink, rates.uplink);
    const Bytes size = topology.devices[device].memory;
    memory.push_back(size == Bytes(0) ? kUnlimitedBytes : size);
    for (int other = 0; other < DeviceCount(topology); ++other) {
      if (other == device) continue;
      const auto way = WayBetween(topology, DeviceId(device), DeviceId(other));
      if (way.has_value() && std::find(ways.begin(), ways.end(), *way) == ways.end()) {
        ways.push_back(*way);
      }
    }
  }
  SwapLimits limits;
  limits.link_out.assign(workers, best.out);
  limits.link_in.assign(workers, best.in);
  limits.uplink.assign(workers, best.uplink);
  SharedUplinks all{.name = "the uplinks of all switches"};
  for (int worker = 0; worker < workers; ++worker) all.workers.push_back(worker);
  for (const PcieSwitch& uplink : topology.switches) all.uplinks.push_back(RatesOf(uplink));
  if (!all.uplinks.empty()) limits.shared.push_back(all);
  std::sort(memory.begin(), memory.end(), std::greater<>());
  for (size_t idle = 0; idle + workers < memory.size(); ++idle) {
    limits.idle_memory = std::min(kUnlimitedBytes, limits.idle_memory + memory[idle]);
  }
  limits.ways.assign(workers, std::vector<std::vector<MessageWay>>(workers, ways));
  return limits;
}

SwapLimits OnDevices(const Topology& topology, const std::vector<DeviceId>& device_of_worker) {
  SwapLimits limits;
  for (const DeviceId device : device_of_worker) {
    const DeviceRates rates = RatesOf(topology, device);
    limits.link_out.push_back(rates.out);
    limits.link_in.push_back(rates.in);
    limits.uplink.push_back(rates.uplink);
    std::vector<std::vector<MessageWay>>& row = limits.ways.emplace_back();
    for (const DeviceId other : device_of_worker) {
      row.emplace_back();
      if (other == device) continue;
      const auto way = WayBetween(topology, device, other);
      if (way.has_value()) row.back().push_back(*way);
    }
  }
  for (size_t index = 0; index < topology.switches.size(); ++index) {
    SharedUplinks one{.name = absl::StrCat("the uplink of switch ", index),
                      .uplinks = {RatesOf(topology.switches[index])}};
    for (size_t worker = 0; worker < device_of_worker.size(); ++worker) {
      if (SwitchOf(topology, device_of_worker[worker]) == static_cast<int>(index)) {
        one.workers.push_back(static_cast<int>(worker));
      }
    }
    if (!one.workers.empty()) limits.shared.push_back(one);
  }
  for (int device = 0; device < DeviceCount(topology); ++device) {
    if (std::find(device_of_worker.begin(), device_of_worker.end(), DeviceId(device)) !=
        device_of_worker.end()) {
      continue;
    }
    const Bytes size = topology.devices[device].memory;
    limits.idle_memory =
        size == Bytes(0) ? kUnlimitedBytes : std::min(kUnlimitedBytes, limits.idle_memory + size);
  }
  return limits;
}

// Processes of one machine: every two have a way of their own, and all share that to the host.
SwapLimits OfOneMachine(const TransportCosts& transport, int workers) {
  SwapLimits limits;
  BytesPerSecond to_others;
  for (int other = 1; other < workers; ++other) to_others = Sum(to_others, Limit(transport.rate));
  const BytesPerSecond host = Limit(transport.host_rate);
  const UplinkRates uplink{host, host, host, host};
  limits.link_out.assign(workers, to_others);
  limits.link_in.assign(workers, to_others);
  limits.uplink.assign(workers, uplink);
  SharedUplinks all{.name = "the way to the host", .uplinks = {uplink}};
  for (int worker = 0; worker < workers; ++worker) all.workers.push_back(worker);
  limits.shared.push_back(all);
  const std::vector<MessageWay> ways{{transport.latency, Limit(transport.rate)}};
  limits.ways.assign(workers, std::vector<std::vector<MessageWay>>(workers, ways));
  return limits;
}

}  // namespace

BytesPerSecond FastestOut(const UplinkRates& uplink) {
  return std::max(uplink.out_alone, uplink.out_both);
}
BytesPerSecond FastestIn(const UplinkRates& uplink) {
  return std::max(uplink.in_alone, uplink.in_both);
}

UplinkRates Better(const UplinkRates& a, const UplinkRates& b) {
  return {.out_alone = std::max(a.out_alone, b.out_alone),
          .in_alone = std::max(a.in_alone, b.in_alone),
          .out_both = std::max(a.out_both, b.out_both),
          .in_both = std::max(a.in_both, b.in_both)};
}

bool Shares(const SharedUplinks& shared, int worker) {
  return std::find(shared.workers.begin(), shared.workers.end(), worker) != shared.workers.end();
}

SwapLimits SwapLimitsOf(const PlanningProblem& problem) {
  const int workers = WorkerCount(problem.schedule) * problem.schedule.replicas;
  if (problem.topology.devices.empty()) return OfOneMachine(problem.transport, workers);
  if (problem.mapping.has_value()) {
    return OnDevices(problem.topology, problem.mapping->device_of_worker);
  }
  return OnAnyDevice(problem.topology, workers);
}

Nanos LeastMessageTime(const std::vector<MessageWay>& ways, Bytes bytes) {
  if (ways.empty()) return Nanos(0);
  Nanos least(std::numeric_limits<int64_t>::max());
  for (const MessageWay& way : ways) {
    least = std::min(least, way.latency + TimeToMove(bytes, way.rate));
  }
  return least;
}

Nanos TimeToMove(Bytes bytes, BytesPerSecond rate) {
  return Nanos(static_cast<int64_t>(absl::int128(bytes.value) * kNanosPerSecond / rate.value));
}

Bytes BytesMoved(BytesPerSecond rate, Nanos time) {
  const absl::int128 moved = absl::int128(rate.value) * time.value / kNanosPerSecond;
  return Bytes(static_cast<int64_t>(std::min(moved, absl::int128(kUnlimitedBytes.value))));
}

Bytes BytesMoved(const std::vector<UplinkRates>& uplinks, Nanos time) {
  Bytes moved;
  for (const UplinkRates& uplink : uplinks) {
    moved = std::min(kUnlimitedBytes,
                     moved + BytesMoved(std::min(FastestOut(uplink), FastestIn(uplink)), time));
  }
  return moved;
}

}  // namespace siphon
