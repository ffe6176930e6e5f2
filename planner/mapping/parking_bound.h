#ifndef SIPHON_PLANNER_MAPPING_PARKING_BOUND_H_
#define SIPHON_PLANNER_MAPPING_PARKING_BOUND_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "planner/ids.h"
#include "planner/mapping/parking_demand.h"
#include "planner/mapping/parking_flow.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/mapping/timed_flow.h"

namespace siphon {

// What no completion of a map can beat: LeastParkingTime, with these freedoms for workers that have
// no device yet. Each of them may lend from every free device at once, as long as all such lenders
// together take no more, nor faster, than they could on the best devices, one each; an owner among
// them has the best free device's links to each lender. So what a completion parks, the relaxed
// network can carry in the same time. If all can be parked, owners without a device also need what
// the fastest free devices, one each, take.
class ParkingBound {
 public:
  // Both must outlive this. Requires: CheckParkingDemand.
  ParkingBound(const SwapFabric& fabric, const ParkingDemand& demand);

  // `placed` are the devices of workers 0, 1, ...; `before` is a bound for fewer of them. Never
  // below `before`, nor below the bound for fewer. Requires: different devices of the fabric.
  ParkingTime Of(absl::Span<const DeviceId> placed, const ParkingTime& before) const;
  // What no completion parks at least, without its time.
  Bytes UnparkedOf(absl::Span<const DeviceId> placed) const;

 private:
  struct Room;  // what may be lent, by device

  TimedFlow FlowFor(absl::Span<const DeviceId> placed, const Room& room) const;
  Room RoomFor(absl::Span<const DeviceId> placed) const;
  int64_t RateOut(int device, const Room& room) const;
  // Of free devices as lenders, fastest first.
  std::vector<int64_t> RatesInto(absl::Span<const DeviceId> placed, const Room& room) const;
  Nanos TimeOfUnplaced(size_t placed, const Room& room) const;
  void AddOwners(absl::Span<const DeviceId> placed, const Room& room, TimedFlow& flow) const;

  const SwapFabric& fabric_;
  const ParkingDemand& demand_;
  Bytes parked_;  // by all owners
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_PARKING_BOUND_H_
