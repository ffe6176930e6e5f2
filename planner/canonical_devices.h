#ifndef SIPHON_PLANNER_CANONICAL_DEVICES_H_
#define SIPHON_PLANNER_CANONICAL_DEVICES_H_

#include <vector>

#include "absl/types/span.h"
#include "planner/ids.h"
#include "planner/topology.h"

namespace siphon {

// An order of a server's devices that depends on how they are joined and not on their numbers:
// `order[k]` becomes device k. Two numberings of one server become one topology (Renumbered), so
// that whatever is planned for it costs the same.
//
// Of all orders the one whose description is the least: device by device what it is (memory, caps,
// uplink, drives), then its ways to those before it, near ones first, of those the slower ones
// first, unlinked ones last. Orders that differ by a symmetry describe the same; of these the
// lexicographically least is returned. Presets with the rates of wires have this order already.
//
// As they are, 0, 1, 2, ..: devices that share a NUMA node's several drives, since their numbers
// say who uses which (DriveOf).
std::vector<DeviceId> CanonicalOrder(const Topology& topology);

// The same server with device order[k] called k. Links and switches are sorted by devices,
// NUMA nodes numbered in their order; drives stay as they are. Requires: each device once.
Topology Renumbered(const Topology& topology, absl::Span<const DeviceId> order);

}  // namespace siphon

#endif  // SIPHON_PLANNER_CANONICAL_DEVICES_H_
