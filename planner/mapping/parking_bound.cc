#include "planner/mapping/parking_bound.h"

#include <algorithm>
#include <functional>

namespace siphon {
namespace {

int64_t Sum(int64_t a, int64_t b) {
  return a > SwapFabric::kUnlimited - b ? SwapFabric::kUnlimited : a + b;
}

// The sum of the `count` largest.
int64_t SumOfLargest(std::vector<int64_t>& values, int count) {
  std::sort(values.begin(), values.end(), std::greater<>());
  int64_t sum = 0;
  for (int place = 0; place < std::min(count, static_cast<int>(values.size())); ++place) {
    sum = Sum(sum, values[place]);
  }
  return sum;
}

}  // namespace

struct ParkingBound::Room {
  std::vector<int64_t> lendable;  // [device], bytes that it may lend
  std::vector<bool> free;         // [device]
  int64_t pool = 0;               // bytes that all free devices may lend together
  int free_lenders = 0;           // how many of them may lend
};

ParkingBound::ParkingBound(const SwapFabric& fabric, const ParkingDemand& demand)
    : fabric_(fabric), demand_(demand) {
  for (const WorkerParking& worker : demand.workers) parked_ += worker.parked;
}

ParkingBound::Room ParkingBound::RoomFor(absl::Span<const DeviceId> placed) const {
  Room room;
  room.lendable.assign(fabric_.devices, 0);
  room.free.assign(fabric_.devices, true);
  for (size_t worker = 0; worker < placed.size(); ++worker) {
    room.free[placed[worker].value] = false;
    room.lendable[placed[worker].value] = demand_.workers[worker].lendable.value;
  }
  int64_t largest = 0;
  for (size_t worker = placed.size(); worker < demand_.workers.size(); ++worker) {
    const int64_t lendable = demand_.workers[worker].lendable.value;
    largest = std::max(largest, lendable);
    room.pool += lendable;
    room.free_lenders += lendable > 0 ? 1 : 0;
  }
  const int idle = fabric_.devices - static_cast<int>(demand_.workers.size());
  std::vector<int64_t> memories;
  for (int device = 0; device < fabric_.devices; ++device) {
    if (!room.free[device]) continue;
    const int64_t memory = idle > 0 ? fabric_.memory[device] : 0;
    room.lendable[device] = std::max(largest, memory);
    memories.push_back(memory);
  }
  room.pool += SumOfLargest(memories, idle);
  room.free_lenders += idle;
  return room;
}

int64_t ParkingBound::RateOut(int device, const Room& room) const {
  int64_t sum = 0;
  int64_t fastest = 0;
  std::vector<int64_t> to_free;
  for (int lender = 0; lender < fabric_.devices; ++lender) {
    const int64_t rate =
        lender == device || room.lendable[lender] == 0 ? 0 : fabric_.rate[device][lender];
    fastest = std::max(fastest, rate);
    if (room.free[lender]) {
      to_free.push_back(rate);
    } else {
      sum = Sum(sum, rate);
    }
  }
  if (fabric_.engines == CopyEngines::kOneForAllPeers)
    return std::min(fabric_.cap[device], fastest);
  return std::min(fabric_.cap[device], Sum(sum, SumOfLargest(to_free, room.free_lenders)));
}

void ParkingBound::AddOwners(absl::Span<const DeviceId> placed, const Room& room,
                             TimedFlow& flow) const {
  // An owner without a device: the best that any free device offers.
  std::vector<int64_t> best_rate(fabric_.devices);
  int64_t best_out = 0;
  for (int device = 0; device < fabric_.devices; ++device) {
    if (!room.free[device]) continue;
    best_out = std::max(best_out, RateOut(device, room));
    for (int lender = 0; lender < fabric_.devices; ++lender) {
      if (lender != device)
        best_rate[lender] = std::max(best_rate[lender], fabric_.rate[device][lender]);
    }
  }
  const auto workers = static_cast<int>(demand_.workers.size());
  for (int worker = 0; worker < workers; ++worker) {
    const int64_t parked = demand_.workers[worker].parked.value;
    if (parked == 0) continue;
    const bool has_device = worker < static_cast<int>(placed.size());
    const int device = has_device ? placed[worker].value : -1;
    flow.AddArc(TimedFlow::kSource, 2 + worker, parked,
                has_device ? RateOut(device, room) : best_out);
    const std::vector<int64_t>& rates = has_device ? fabric_.rate[device] : best_rate;
    for (int lender = 0; lender < fabric_.devices; ++lender) {
      if (lender == device || rates[lender] == 0 || room.lendable[lender] == 0) continue;
      const bool one_engine = fabric_.engines == CopyEngines::kOneForAllPeers;
      flow.AddArc(2 + worker, 2 + workers + lender, std::min(parked, room.lendable[lender]),
                  one_engine ? SwapFabric::kUnlimited : rates[lender]);
    }
  }
}

ParkingTime ParkingBound::Of(absl::Span<const DeviceId> placed, const ParkingTime& before) const {
  const Room room = RoomFor(placed);
  const auto workers = static_cast<int>(demand_.workers.size());
  const int pool = 2 + workers + fabric_.devices;
  TimedFlow flow(pool + 1, Bytes(1));
  AddOwners(placed, room, flow);
  for (int device = 0; device < fabric_.devices; ++device) {
    if (room.lendable[device] == 0) continue;
    flow.AddArc(2 + workers + device, room.free[device] ? pool : TimedFlow::kSink,
                room.lendable[device], fabric_.cap[device]);
  }
  flow.AddArc(pool, TimedFlow::kSink, room.pool, SwapFabric::kUnlimited);
  const int64_t most = flow.MostFlow();
  const Bytes unparked = parked_ - Bytes(most);
  if (unparked < before.unparked) return before;
  return {unparked, flow.LeastTime(most, unparked == before.unparked ? before.time : Nanos(0))};
}

}  // namespace siphon
