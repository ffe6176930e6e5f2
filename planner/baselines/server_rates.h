#ifndef SIPHON_PLANNER_BASELINES_SERVER_RATES_H_
#define SIPHON_PLANNER_BASELINES_SERVER_RATES_H_

#include "absl/status/statusor.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// Rates that each of a server's devices has while all of them do the same: those of the worst-off
// device, as the others wait for it. 0: no limit is known.
struct ServerRates {
  int devices = 0;
  BytesPerSecond to_host;         // while nothing comes from the host
  BytesPerSecond from_host;       // while nothing goes to the host
  BytesPerSecond to_host_both;    // while both directions run
  BytesPerSecond from_host_both;  // likewise
  // Of a collective over all devices, in each direction: all links of a device together, within its
  // caps, as rings over all links use them (ASSUMED: without loss). Without links, through the
  // host.
  BytesPerSecond collective;
  BytesPerSecond drives_read;   // all drives together
  BytesPerSecond drives_write;  // likewise
  friend bool operator==(const ServerRates&, const ServerRates&) = default;
};

// Errors: InvalidArgument naming a device that no switch connects to the host.
// Requires: CheckTopology; devices.
absl::StatusOr<ServerRates> RatesOf(const Topology& topology);

// Rounded up to a nanosecond; no time where no limit is known.
Nanos TimeFor(Bytes bytes, BytesPerSecond rate);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BASELINES_SERVER_RATES_H_
