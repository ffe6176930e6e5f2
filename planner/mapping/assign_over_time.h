#ifndef SIPHON_PLANNER_MAPPING_ASSIGN_OVER_TIME_H_
#define SIPHON_PLANNER_MAPPING_ASSIGN_OVER_TIME_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/mapping/assign_parking.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/memory_plan.h"
#include "planner/units.h"

namespace siphon {

// What workers have parked and what they could lend, moment by moment of a step.
struct ParkingOverTime {
  std::vector<std::vector<Bytes>> parked;    // [worker][moment]
  std::vector<std::vector<Bytes>> lendable;  // [worker][moment]
  friend bool operator==(const ParkingOverTime&, const ParkingOverTime&) = default;
};

// AssignParking for what changes over time: an owner's bytes are shared among its lenders in one
// proportion for the whole step, and no lender takes more at any moment than it has then. So one
// that is full early lends late, and owners that park at different times use the same bytes.
//
// Each lender lends so many bytes, of all its owners at their fullest, as fit at its tightest
// moment if it serves them in the same proportions as in the round before; at first, as if it
// served all of them at their fullest whenever anything is parked (which is always safe). Rounds
// end when an assignment no longer changes, or after kMostRounds. Returns the best one that keeps
// to all moments: at most that first one's bytes find no room. Not always the best there is, which
// would be a linear program.
//
// Stripes and `unparked` are of each owner's fullest moment. Requires: CheckMapping, a positive
// granule. Errors: InvalidArgument unless all curves have the same moments.
absl::StatusOr<ParkingAssignment> AssignParkingOverTime(const SwapFabric& fabric,
                                                        const DeviceMapping& mapping,
                                                        const ParkingOverTime& curves,
                                                        Bytes granule);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_ASSIGN_OVER_TIME_H_
