#ifndef SIPHON_PLANNER_MAPPING_ASSIGN_PARKING_H_
#define SIPHON_PLANNER_MAPPING_ASSIGN_PARKING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/mapping/parking_demand.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/memory_plan.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

struct OwnerParking {
  std::vector<Stripe> stripes;  // ascending by lender
  Bytes unparked;               // no lender has room for it
  // One way, in the slower direction, while all owners move their bytes at once.
  Nanos time;
  friend bool operator==(const OwnerParking&, const OwnerParking&) = default;
};

struct ParkingAssignment {
  std::vector<OwnerParking> owners;  // [worker]
  Bytes unparked;                    // all owners together
  Nanos time;                        // the slowest owner's
  friend bool operator==(const ParkingAssignment&, const ParkingAssignment&) = default;
};

// Which lender takes how many bytes of each owner (MPress, III.C: data striping, and line 7 of
// figure 6). In this order:
// 1. as many bytes as possible are parked;
// 2. the slowest owner takes the least time;
// 3. the longest stripe of each owner takes the least time, the slowest owner's first. So stripes
//    are proportional to the rates of the links, and equal where links are, until a lender is full.
//
// A device lends what its worker lends, without a worker all of its memory. Stripes are whole
// granules, but for an owner's last one. No lender takes more than it has, nothing passes a pair of
// devices that does not lend (SwapFabric). 1 and 2 are exact in granules but for fabrics with one
// copy engine and pairs of unequal rates (ParkingFlow says how far off). Latencies are left out:
// microseconds beside milliseconds.
//
// Errors: as CheckParkingDemand and CheckMapping; InvalidArgument when the granule is not positive.
absl::StatusOr<ParkingAssignment> AssignParking(const Topology& topology,
                                                const DeviceMapping& mapping,
                                                const ParkingDemand& demand, Bytes granule);

// The same on the topology's fabric. Requires: CheckParkingDemand, CheckMapping, a positive
// granule.
ParkingAssignment AssignParkingOn(const SwapFabric& fabric, const DeviceMapping& mapping,
                                  const ParkingDemand& demand, Bytes granule);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_ASSIGN_PARKING_H_
