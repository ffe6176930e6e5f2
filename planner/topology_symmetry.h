#ifndef SIPHON_PLANNER_TOPOLOGY_SYMMETRY_H_
#define SIPHON_PLANNER_TOPOLOGY_SYMMETRY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "planner/ids.h"
#include "planner/topology.h"

namespace siphon {

// What a renumbering of devices must keep: the devices and the links between them, or also where
// they meet the host (switches, NUMA nodes, the drive that each uses). A plan that copies nothing
// to the host may use the first.
enum class SymmetryScope { kDevicesAndLinks, kWithHost };

// The renumberings of a topology's devices that change nothing: every rate, latency, count of wires
// and size, the groups of switches and NUMA nodes, and which devices share a drive (DriveOf) stay
// as they are. Maps of stages to devices that differ by one of them cost the same, so a search
// looks at one of each such family.
//
// The group is found as a chain of stabilisers (C. C. Sims, "Computational methods in the study of
// permutation groups", 1970), each orbit by backtracking. On topologies that no server has,
// backtracking could take for ever: it is cut short then, `exact()` is false, and what is known is
// a part of the group, which is still safe to search by; GroupSize() is
// then too small and DistinctMaps() too large.
class TopologySymmetry {
 public:
  // Requires: what CheckTopology checks.
  explicit TopologySymmetry(const Topology& topology,
                            SymmetryScope scope = SymmetryScope::kWithHost);

  int devices() const { return devices_; }
  bool exact() const { return exact_; }

  // How many renumberings there are, the one that moves nothing included. None above 2^128.
  std::optional<absl::uint128> GroupSize() const;
  // Families of maps with a stage on every device: devices! / GroupSize().
  std::optional<absl::uint128> DistinctMaps() const;

  // Renumberings of which all others are made: generator[d] is what device d becomes. Empty when
  // the topology has no symmetry.
  const std::vector<std::vector<DeviceId>>& Generators() const { return generators_; }

  // The least device of each family that looks the same once `placed` stay where they are, without
  // those placed, ascending. A search that tries only these for the next stage meets one map of
  // each family, the lexicographically least.
  // Requires: `placed` are different devices of the topology.
  std::vector<DeviceId> NextDevices(absl::Span<const DeviceId> placed) const;

 private:
  enum class Found { kYes, kNo, kGaveUp };

  void Describe(const Topology& topology, SymmetryScope scope);
  void RefineKinds();
  bool Agrees(absl::Span<const int> image, int device, int candidate) const;
  // Completes image[0, placed) to a renumbering in the order order[0], order[1], ...
  Found Complete(absl::Span<const int> order, int placed, std::vector<int>& image,
                 int64_t& steps) const;
  // Is there a renumbering that keeps `placed` and sends `from` to `to`? Then `image` is it.
  // `steps` is what all searches for one answer have taken.
  Found FindMoving(absl::Span<const int> placed, int from, int to, std::vector<int>& image,
                   int64_t& steps) const;
  // Unites what is known, then looks for more; returns the size of `from`'s family.
  int Orbit(absl::Span<const int> placed, int from, int64_t& steps);

  int devices_ = 0;
  bool exact_ = true;
  std::vector<int> kind_;              // [device]; equal for devices that may look the same
  std::vector<std::vector<int>> way_;  // [from][to]; equal for ways that are the same
  std::vector<int> orbit_sizes_;       // [device d], with those below d kept in place
  std::vector<std::vector<DeviceId>> generators_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_TOPOLOGY_SYMMETRY_H_
