#include "planner/mapping/parking_bound.h"

#include <algorithm>
#include <functional>

namespace siphon {
namespace {

// The sum of the `count` largest.
int64_t SumOfLargest(std::vector<int64_t>& values, size_t count) {
  std::sort(values.begin(), values.end(), std::greater<>());
  int64_t sum = 0;
  for (size_t place = 0; place < std::min(count, values.size()); ++place) {
    sum = SumOfRates(sum, values[place]);
  }
  return sum;
}

}  // namespace

struct ParkingBound::Room {
  std::vector<int64_t> lendable;  // [device], bytes that it may lend
  std::vector<bool> free;         // [device]
  std::vector<int64_t> rate_out;  // [device], of an owner on it to all that may lend to it
  // Bytes that free devices will lend, one entry each, most first.
  std::vector<int64_t> pool;
};

ParkingBound::ParkingBound(const SwapFabric& fabric, const ParkingDemand& demand)
    : fabric_(fabric), demand_(demand) {
  for (const ParkingNeed& worker : demand.workers) parked_ += worker.parked;
}

ParkingBound::Room ParkingBound::RoomFor(absl::Span<const DeviceId> placed) const {
  Room room;
  room.lendable.assign(fabric_.devices, 0);
  room.free.assign(fabric_.devices, true);
  for (size_t worker = 0; worker < placed.size(); ++worker) {
    room.free[placed[worker].value] = false;
    room.lendable[placed[worker].value] = demand_.workers[worker].lendable.value;
  }
  // Of devices that stay without a worker, those with the most memory.
  const auto idle = static_cast<size_t>(fabric_.devices) - demand_.workers.size();
  for (int device = 0; device < fabric_.devices; ++device) {
    if (room.free[device] && idle > 0) room.pool.push_back(fabric_.memory[device]);
  }
  std::sort(room.pool.begin(), room.pool.end(), std::greater<>());
  room.pool.resize(idle);
  for (size_t worker = placed.size(); worker < demand_.workers.size(); ++worker) {
    const int64_t lendable = demand_.workers[worker].lendable.value;
    if (lendable > 0) room.pool.push_back(lendable);
  }
  std::sort(room.pool.begin(), room.pool.end(), std::greater<>());
  for (int device = 0; device < fabric_.devices; ++device) {
    if (room.free[device] && !room.pool.empty()) room.lendable[device] = room.pool.front();
  }
  for (int device = 0; device < fabric_.devices; ++device) {
    room.rate_out.push_back(RateOut(device, room));
  }
  return room;
}

int64_t ParkingBound::RateOut(int device, const Room& room) const {
  int64_t sum = 0;
  int64_t fastest = 0;
  std::vector<int64_t> to_free;
  for (int lender = 0; lender < fabric_.devices; ++lender) {
    const int64_t rate = room.lendable[lender] == 0 ? 0 : fabric_.rate[device][lender];
    fastest = std::max(fastest, rate);
    if (room.free[lender]) {
      to_free.push_back(rate);
    } else {
      sum = SumOfRates(sum, rate);
    }
  }
  const bool one_engine = fabric_.engines == CopyEngines::kOneForAllPeers;
  const int64_t all = SumOfRates(sum, SumOfLargest(to_free, room.pool.size()));
  return std::min(fabric_.cap[device], one_engine ? fastest : all);
}

std::vector<int64_t> ParkingBound::RatesInto(absl::Span<const DeviceId> placed,
                                             const Room& room) const {
  size_t unplaced_owners = 0;
  for (size_t worker = placed.size(); worker < demand_.workers.size(); ++worker) {
    unplaced_owners += demand_.workers[worker].parked > Bytes(0) ? 1 : 0;
  }
  std::vector<int64_t> rates;
  for (int lender = 0; lender < fabric_.devices; ++lender) {
    if (!room.free[lender]) continue;
    int64_t sum = 0;
    for (size_t worker = 0; worker < placed.size(); ++worker) {
      if (demand_.workers[worker].parked == Bytes(0)) continue;
      sum = SumOfRates(sum, fabric_.rate[placed[worker].value][lender]);
    }
    std::vector<int64_t> from_free;
    for (int owner = 0; owner < fabric_.devices; ++owner) {
      if (room.free[owner]) from_free.push_back(fabric_.rate[owner][lender]);
    }
    sum = SumOfRates(sum, SumOfLargest(from_free, unplaced_owners));
    rates.push_back(std::min(fabric_.cap[lender], sum));
  }
  std::sort(rates.begin(), rates.end(), std::greater<>());
  return rates;
}

// Owners without a device go to different ones: the best that can be is the most bytes on the
// fastest device, and so on.
Nanos ParkingBound::TimeOfUnplaced(size_t placed, const Room& room) const {
  std::vector<int64_t> rates;
  for (int device = 0; device < fabric_.devices; ++device) {
    if (room.free[device]) rates.push_back(room.rate_out[device]);
  }
  std::vector<Bytes> parked;
  for (size_t worker = placed; worker < demand_.workers.size(); ++worker) {
    if (demand_.workers[worker].parked > Bytes(0)) parked.push_back(demand_.workers[worker].parked);
  }
  std::sort(rates.begin(), rates.end(), std::greater<>());
  std::sort(parked.begin(), parked.end(), std::greater<>());
  Nanos time;
  for (size_t owner = 0; owner < parked.size(); ++owner) {
    if (rates[owner] == 0) return TimedFlow::kLongest;
    time = std::max(time, TransferTime(parked[owner], rates[owner]));
  }
  return time;
}

void ParkingBound::AddOwners(absl::Span<const DeviceId> placed, const Room& room,
                             TimedFlow& flow) const {
  // An owner without a device: the best that any free device offers.
  std::vector<int64_t> best_rate(fabric_.devices);
  int64_t best_out = 0;
  for (int device = 0; device < fabric_.devices; ++device) {
    if (!room.free[device]) continue;
    best_out = std::max(best_out, room.rate_out[device]);
    for (int lender = 0; lender < fabric_.devices; ++lender) {
      best_rate[lender] = std::max(best_rate[lender], fabric_.rate[device][lender]);
    }
  }
  const bool one_engine = fabric_.engines == CopyEngines::kOneForAllPeers;
  const auto workers = static_cast<int>(demand_.workers.size());
  for (int worker = 0; worker < workers; ++worker) {
    const int64_t parked = demand_.workers[worker].parked.value;
    if (parked == 0) continue;
    const bool has_device = worker < static_cast<int>(placed.size());
    const int device = has_device ? placed[worker].value : 0;
    const std::vector<int64_t>& rates = has_device ? fabric_.rate[device] : best_rate;
    flow.AddArc(TimedFlow::kSource, 2 + worker, parked,
                has_device ? room.rate_out[device] : best_out);
    for (int lender = 0; lender < fabric_.devices; ++lender) {
      const int64_t limit = std::min(parked, room.lendable[lender]);
      if (rates[lender] == 0 || limit == 0) continue;
      flow.AddArc(2 + worker, 2 + workers + lender, limit,
                  one_engine ? SwapFabric::kUnlimited : rates[lender]);
    }
  }
}

TimedFlow ParkingBound::FlowFor(absl::Span<const DeviceId> placed, const Room& room) const {
  const auto workers = static_cast<int>(demand_.workers.size());
  const int pool = 2 + workers + fabric_.devices;
  TimedFlow flow(pool + 1, Bytes(1));
  AddOwners(placed, room, flow);
  for (int device = 0; device < fabric_.devices; ++device) {
    if (room.lendable[device] == 0) continue;
    flow.AddArc(2 + workers + device, room.free[device] ? pool : TimedFlow::kSink,
                room.lendable[device], fabric_.cap[device]);
  }
  // Lenders without a device go to different ones: the most that can be taken in is the most room
  // on the device that takes in fastest, and so on.
  const std::vector<int64_t> rates = RatesInto(placed, room);
  for (size_t lender = 0; lender < room.pool.size(); ++lender) {
    flow.AddArc(pool, TimedFlow::kSink, room.pool[lender], rates[lender]);
  }
  return flow;
}

Bytes ParkingBound::UnparkedOf(absl::Span<const DeviceId> placed) const {
  return parked_ - Bytes(FlowFor(placed, RoomFor(placed)).MostFlow());
}

ParkingTime ParkingBound::Of(absl::Span<const DeviceId> placed, const ParkingTime& before) const {
  const Room room = RoomFor(placed);
  TimedFlow flow = FlowFor(placed, room);
  const int64_t most = flow.MostFlow();
  const Bytes unparked = parked_ - Bytes(most);
  if (unparked < before.unparked) return before;
  const Nanos from = unparked == before.unparked ? before.time : Nanos(0);
  const Nanos time = flow.LeastTime(most, from);
  // Holds for maps that park everything; those that do not come after all that do.
  if (unparked > Bytes(0)) return {unparked, time};
  return {unparked, std::max(time, TimeOfUnplaced(placed.size(), room))};
}

}  // namespace siphon
