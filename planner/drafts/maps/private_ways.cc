#include "planner/drafts/maps/private_ways.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "planner/mapping/swap_fabric.h"

namespace siphon {
namespace {

constexpr int64_t kUnlimited = SwapFabric::kUnlimited;
constexpr Nanos kNever(std::numeric_limits<int64_t>::max());

WaySpeed Better(const WaySpeed& a, const WaySpeed& b) {
  return {std::max(a.rate, b.rate), std::min(a.latency, b.latency)};
}

// One after the other.
WaySpeed Through(const WaySpeed& a, const WaySpeed& b) {
  return {std::min(a.rate, b.rate), a.latency + b.latency};
}

// To and from the host and the drive, as they are alone.
std::vector<WaySpeed> HostWays(const Topology& topology, DeviceId device) {
  std::vector<WaySpeed> ways(PrivateWays::kKinds, WaySpeed{kUnlimited});
  const std::optional<int> index = SwitchOf(topology, device);
  if (!index) return ways;
  const PcieSwitch& uplink = topology.switches[*index];
  ways[PrivateWays::kToHost] = {std::max(RateLimit(uplink.to_host), uplink.to_host_both.value),
                                uplink.latency};
  ways[PrivateWays::kFromHost] = {
      std::max(RateLimit(uplink.from_host), uplink.from_host_both.value), uplink.latency};
  if (topology.drives.empty()) return ways;
  const NvmeDrive& drive = topology.drives[DriveOf(topology, device)];
  ways[PrivateWays::kToDrive] = {RateLimit(drive.write), drive.latency};
  ways[PrivateWays::kFromDrive] = {RateLimit(drive.read), drive.latency};
  return ways;
}

struct Lender {
  int64_t rate = 0;
  Bytes room;
};

// At which so many bytes leave, all lenders at once, until each is full. All of their rates where
// they have too little room.
int64_t RateInto(Bytes parked, std::vector<Lender> lenders) {
  using absl::int128;
  std::sort(lenders.begin(), lenders.end(), [](const Lender& a, const Lender& b) {
    return int128(a.room.value) * b.rate < int128(b.room.value) * a.rate;
  });
  int64_t all = 0;
  for (const Lender& lender : lenders) all = SumOfRates(all, lender.rate);
  if (all == kUnlimited) return all;
  int64_t rate = all;
  Bytes left = parked;
  for (const Lender& lender : lenders) {
    if (int128(left.value) * lender.rate <= int128(lender.room.value) * rate) {
      const int128 faster = (int128(parked.value) * rate + left.value - 1) / left.value;
      return static_cast<int64_t>(std::min(faster, int128(all)));
    }
    left -= lender.room;
    rate -= lender.rate;
  }
  return all;
}

}  // namespace

Nanos LeastCopyTime(Bytes bytes, int64_t rate) {
  if (rate == kUnlimited || rate == 0) return Nanos(0);
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  return Nanos(static_cast<int64_t>(absl::int128(bytes.value) * kNanosPerSecond / rate));
}

PrivateWays::PrivateWays(const Topology& topology, int workers, std::vector<Message> messages)
    : topology_(topology), workers_(workers), messages_(std::move(messages)) {
  for (int device = 0; device < DeviceCount(topology); ++device) {
    device_ways_.push_back(HostWays(topology, DeviceId(device)));
  }
  AddMessages();
  AddParking();
}

// Through the host where there is no link, or the network.
void PrivateWays::AddMessages() {
  for (const std::vector<WaySpeed>& from : device_ways_) {
    std::vector<WaySpeed>& speeds = message_speeds_.emplace_back();
    for (const std::vector<WaySpeed>& to : device_ways_) {
      speeds.push_back(Through(from[kToHost], to[kFromHost]));
    }
  }
  for (int from = 0; from < DeviceCount(topology_); ++from) {
    for (int to = 0; to < DeviceCount(topology_); ++to) {
      if (ServerOf(topology_, DeviceId(from)) == ServerOf(topology_, DeviceId(to))) continue;
      message_speeds_[from][to] = {RateLimit(topology_.network.rate), topology_.network.latency};
    }
  }
  for (const TopologyLink& link : topology_.links) {
    const int64_t rate =
        std::min({RateLimit(link.rate), RateLimit(topology_.devices[link.from.value].egress),
                  RateLimit(topology_.devices[link.to.value].ingress)});
    message_speeds_[link.from.value][link.to.value] = {rate, link.latency};
  }
}

// A pair as fast as the faster of its directions.
void PrivateWays::AddParking() {
  const SwapFabric fabric = MakeSwapFabric(topology_);
  const auto devices = static_cast<size_t>(fabric.devices);
  pairs_.assign(devices, std::vector<int64_t>(devices));
  std::vector<Nanos> latencies(devices, kNever);
  for (const TopologyLink& link : topology_.links) {
    const int64_t rate = RateLimit(link.rate);
    for (const auto& [owner, lender] :
         {std::pair(link.from.value, link.to.value), std::pair(link.to.value, link.from.value)}) {
      if (fabric.rate[owner][lender] == 0) continue;
      pairs_[owner][lender] = std::max(pairs_[owner][lender], rate);
      latencies[owner] = std::min(latencies[owner], link.latency);
      slowest_pair_ = slowest_pair_ == 0 ? rate : std::min(slowest_pair_, rate);
    }
  }
  for (size_t owner = 0; owner < devices; ++owner) {
    int64_t rate = 0;
    for (const int64_t pair : pairs_[owner]) {
      rate = topology_.copy_engines == CopyEngines::kOneForAllPeers ? std::max(rate, pair)
                                                                    : SumOfRates(rate, pair);
    }
    const TopologyDevice& caps = topology_.devices[owner];
    rate = std::min(rate, std::max(RateLimit(caps.egress), RateLimit(caps.ingress)));
    device_ways_[owner][kParking] = {rate, rate == 0 ? Nanos(0) : latencies[owner]};
  }
}

// Of workers without a device, but for the owner, and of devices that stay without one: most first.
std::vector<Bytes> PrivateWays::RoomsOfFree(absl::Span<const DeviceId> placed,
                                            const std::vector<int>& free, int owner) const {
  std::vector<Bytes> rooms;
  for (const int device : free) rooms.push_back(topology_.devices[device].memory);
  std::sort(rooms.begin(), rooms.end(), std::greater<>());
  rooms.resize(device_ways_.size() - static_cast<size_t>(workers_));
  for (auto worker = static_cast<int>(placed.size()); worker < workers_; ++worker) {
    if (worker != owner) rooms.push_back(demand_->workers[worker].lendable);
  }
  std::sort(rooms.begin(), rooms.end(), std::greater<>());
  return rooms;
}

// Of free devices the fastest ones have the most room.
int64_t PrivateWays::ParkingRateOn(int device, int owner, absl::Span<const DeviceId> placed,
                                   const std::vector<int>& free,
                                   const std::vector<Bytes>& free_rooms) const {
  const std::vector<int64_t>& rates = pairs_[device];
  std::vector<Lender> lenders;
  const auto add = [&lenders](int64_t rate, Bytes room) {
    if (rate > 0 && room > Bytes(0)) lenders.push_back({rate, room});
  };
  for (size_t worker = 0; worker < placed.size(); ++worker) {
    add(rates[placed[worker].value], demand_->workers[worker].lendable);
  }
  std::vector<int64_t> to_free;
  for (const int other : free) to_free.push_back(rates[other]);
  std::sort(to_free.begin(), to_free.end(), std::greater<>());
  for (size_t place = 0; place < std::min(free_rooms.size(), to_free.size()); ++place) {
    add(to_free[place], free_rooms[place]);
  }
  if (topology_.copy_engines != CopyEngines::kOneForAllPeers) {
    return RateInto(demand_->workers[owner].parked, std::move(lenders));
  }
  int64_t fastest = 0;
  for (const Lender& lender : lenders) fastest = std::max(fastest, lender.rate);
  return fastest;
}

int64_t PrivateWays::ParkingRate(int owner, absl::Span<const DeviceId> placed,
                                 const std::vector<int>& free) const {
  const std::vector<Bytes> rooms = RoomsOfFree(placed, free, owner);
  if (owner < static_cast<int>(placed.size())) {
    return ParkingRateOn(placed[owner].value, owner, placed, free, rooms);
  }
  int64_t best = 0;
  for (const int device : free) {
    best = std::max(best, ParkingRateOn(device, owner, placed, free, rooms));
  }
  return best;
}

std::vector<WaySpeed> PrivateWays::SpeedsOn(absl::Span<const DeviceId> placed) const {
  std::vector<bool> taken(device_ways_.size());
  for (const DeviceId device : placed) taken[device.value] = true;
  std::vector<int> free;
  for (size_t device = 0; device < taken.size(); ++device) {
    if (!taken[device]) free.push_back(static_cast<int>(device));
  }
  const auto devices_of = [&](int worker) {
    return worker < static_cast<int>(placed.size()) ? std::vector<int>{placed[worker].value} : free;
  };
  std::vector<WaySpeed> speeds;
  for (int worker = 0; worker < workers_; ++worker) {
    const std::vector<int> devices = devices_of(worker);
    for (int kind = 0; kind < kKinds; ++kind) {
      WaySpeed best = device_ways_[devices.front()][kind];
      for (const int device : devices) best = Better(best, device_ways_[device][kind]);
      speeds.push_back(best);
    }
    if (!demand_ || demand_->workers[worker].parked == Bytes(0)) continue;
    const int64_t rate = ParkingRate(worker, placed, free);
    WaySpeed& parking = speeds[OfWorker(worker, kParking)];
    if (rate > 0) parking.rate = std::min(parking.rate, rate);
  }
  for (const auto& [sender, receiver] : messages_) {
    WaySpeed best{0, kNever};
    for (const int from : devices_of(sender.value)) {
      for (const int to : devices_of(receiver.value)) {
        if (from != to) best = Better(best, message_speeds_[from][to]);
      }
    }
    speeds.push_back(best);
  }
  speeds.push_back({kUnlimited});
  return speeds;
}

Bytes PrivateWays::AllFor(Bytes stripe) const {
  int64_t fastest = 0;
  for (const std::vector<WaySpeed>& ways : device_ways_) {
    fastest = std::max(fastest, ways[kParking].rate);
  }
  if (slowest_pair_ == 0 || fastest == kUnlimited) return stripe;
  return Bytes(static_cast<int64_t>(absl::int128(stripe.value) * fastest / slowest_pair_) + 1);
}

Topology PrivateWays::Numbered() const {
  Topology numbered{.name = "private ways",
                    .devices = std::vector<TopologyDevice>(2 * workers_ + 1)};
  const auto link = [&numbered](DeviceId a, DeviceId b, BytesPerSecond rate) {
    numbered.links.push_back({.from = a, .to = b, .rate = rate});
  };
  for (int worker = 0; worker < workers_; ++worker) {
    const DeviceId device(worker);
    const auto number = [&](Kind kind) { return Number(OfWorker(worker, kind)); };
    numbered.devices[worker].numa = worker;
    link(device, LenderOf(worker), number(kParking));
    link(LenderOf(worker), device, number(kParking));
    link(device, FreeLender(), Number(Free()));
    link(FreeLender(), device, Number(Free()));
    numbered.switches.push_back(
        {.devices = {device}, .to_host = number(kToHost), .from_host = number(kFromHost)});
    numbered.drives.push_back(
        {.read = number(kFromDrive), .write = number(kToDrive), .numa = worker});
    for (int other = 0; other < workers_; ++other) {
      if (other == worker) continue;
      const Message message{WorkerId(worker), WorkerId(other)};
      const auto found = std::find(messages_.begin(), messages_.end(), message);
      const auto index = static_cast<int>(found - messages_.begin());
      // Between others only numbers of the schedule's end go: as on Free(), which comes last.
      link(device, DeviceId(other), Number(workers_ * kKinds + index));
    }
  }
  return numbered;
}

}  // namespace siphon
