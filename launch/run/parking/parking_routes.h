#ifndef SIPHON_LAUNCH_RUN_PARKING_PARKING_ROUTES_H_
#define SIPHON_LAUNCH_RUN_PARKING_PARKING_ROUTES_H_

#include <optional>

#include "launch/run/parking/topology_ways.h"
#include "launch/run/seat/measured_steps.h"
#include "swap/device/link_queues.h"
#include "swap/parking_layout.h"

namespace siphon {

// A link in both directions.
struct TwoRoutes {
  LinkRoute out, in;
};

// How what a device parks gets to a place and back; nothing where there is no way.
std::optional<TwoRoutes> RoutesTo(const TopologyWays& ways, DeviceId owner,
                                  const ParkingPlace& place);

// What the worker can count on: the slower direction, and of what others use at the same time (an
// uplink, a copy engine for all of `lenders`) its part.
CopyLinkRate PlannedRate(const TopologyWays& ways, DeviceId owner, const ParkingPlace& place,
                         const TwoRoutes& routes, int lenders);

// Of two limits, where 0 is none.
BytesPerSecond SlowerRate(BytesPerSecond a, BytesPerSecond b);

// How long a link took beside what its topology says: longer than with the rate that it can count
// on, or shorter than with the whole rate. In between others may have been at the same uplink or
// engine: 1, as where no rate is known.
double PaceOfLink(const TopologyWays& ways, DeviceId owner, const PlaceUse& used, int lenders);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_PARKING_ROUTES_H_
