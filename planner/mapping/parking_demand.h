#ifndef SIPHON_PLANNER_MAPPING_PARKING_DEMAND_H_
#define SIPHON_PLANNER_MAPPING_PARKING_DEMAND_H_

#include <vector>

#include "absl/status/status.h"
#include "planner/memory_plan.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// What a worker has too much of, or room for.
struct ParkingNeed {
  Bytes parked;    // must be on other devices when the worker is at its fullest
  Bytes lendable;  // free at every moment at which anything is parked
  friend bool operator==(const ParkingNeed&, const ParkingNeed&) = default;
};

struct ParkingDemand {
  std::vector<ParkingNeed> workers;
  friend bool operator==(const ParkingDemand&, const ParkingDemand&) = default;
};

// As if all workers were at their fullest at once (MPress, figure 6): what is above a worker's
// capacity is parked, what is below is lent. A worker without a limit (capacity 0) does neither:
// nothing says what it has free.
// Requires: one capacity a worker.
ParkingDemand PeakParkingDemand(const std::vector<Bytes>& peaks,
                                const std::vector<Bytes>& capacity);

// Bytes that a worker holds from `time` on, until the next point, if nothing is parked.
struct HeldPoint {
  Nanos time;
  Bytes bytes;
  friend bool operator==(const HeldPoint&, const HeldPoint&) = default;
};
using HeldCurve = std::vector<HeldPoint>;

// The same from curves over time: a worker lends what is free at every moment at which any worker
// is above its capacity, so one that is full only before or after lends more than its peak leaves.
// Requires: one capacity a worker; times ascend. O(points * workers).
ParkingDemand ParkingDemandOverTime(const std::vector<HeldCurve>& curves,
                                    const std::vector<Bytes>& capacity);

// Errors: InvalidArgument for negative bytes, more workers than devices, or sums beyond 2^60 bytes.
absl::Status CheckParkingDemand(const ParkingDemand& demand, const Topology& topology);

// Errors: InvalidArgument unless the map gives every one of `workers` a device of its own.
absl::Status CheckMapping(const DeviceMapping& mapping, int workers, const Topology& topology);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_PARKING_DEMAND_H_
