#ifndef SIPHON_LAUNCH_PLAN_JOB_PARKING_REGION_H_
#define SIPHON_LAUNCH_PLAN_JOB_PARKING_REGION_H_

#include <vector>

#include "planner/ids.h"
#include "planner/units.h"
#include "swap/parking_layout.h"

namespace siphon {

// Lenders' memory as one region that all workers of a host have mapped: in it each owner has its
// part of what each lender lends. Everybody comes to the same, so nobody asks.
struct ParkingRegion {
  struct Part {
    DeviceId lender;
    WorkerId owner;
    Bytes offset;
    Bytes bytes;
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::vector<Part> parts;  // one behind the other: by lender, then by owner
  Bytes bytes;              // in all; 0: nobody lends
  friend bool operator==(const ParkingRegion&, const ParkingRegion&) = default;
};

// A lender's memory begins at a page, an owner's part at a cache line.
ParkingRegion LayOutRegion(const std::vector<WorkerParking>& parking);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PLAN_JOB_PARKING_REGION_H_
