#ifndef SIPHON_PLANNER_MAPPING_SWAP_FABRIC_H_
#define SIPHON_PLANNER_MAPPING_SWAP_FABRIC_H_

#include <cstdint>
#include <vector>

#include "planner/topology.h"

namespace siphon {

// A topology as D2D swap sees it. What is parked goes out and comes back over the same pair of
// devices, so a pair is as fast as the slower of its two directions, and so are a device's caps.
//
// Which pairs lend: those with a link both ways. A pair without NVLink wires (PCIe, or not known)
// only if that is faster than what the owner's uplink to the host leaves each of the devices behind
// it when all copy at once: otherwise a host swap is at least as fast and takes no lender's memory.
struct SwapFabric {
  static constexpr int64_t kUnlimited = INT64_MAX;  // no limit is known

  int devices = 0;
  CopyEngines engines = CopyEngines::kOnePerPeer;
  // [owner][lender], bytes a second; 0: does not lend.
  std::vector<std::vector<int64_t>> rate;
  std::vector<int64_t> cap;             // [device], of all its copies in one direction together
  std::vector<int64_t> memory;          // [device], bytes; 0: not known
  std::vector<std::vector<int>> wires;  // [from][to], of pairs that lend
  // They can lend to each other.
  bool Linked(int a, int b) const { return rate[a][b] > 0 && rate[b][a] > 0; }
};

// A topology's rate as a fabric's.
int64_t RateLimit(BytesPerSecond rate);
// kUnlimited where one of them is, or where they are more together.
int64_t SumOfRates(int64_t a, int64_t b);

// What a device's uplink leaves it when all devices behind it copy at once, in its slower
// direction, bytes a second; 0: not known, or no uplink.
int64_t HostRateLeft(const Topology& topology, DeviceId device);
// Bytes a second of the pair with these links from the owner and back, as in SwapFabric::rate;
// `host_rate_left` is the owner's. 0: it does not lend.
int64_t LendingRate(const TopologyLink& out, const TopologyLink& back, int64_t host_rate_left);

SwapFabric MakeSwapFabric(const Topology& topology);

// The fabric as a topology without a host: maps that differ by one of its symmetries park equally
// well.
Topology LendingTopology(const Topology& topology);

// Time for `bytes` at `rate`, rounded up to whole nanoseconds; 2^62 at most.
Nanos TransferTime(Bytes bytes, int64_t rate);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_SWAP_FABRIC_H_
