#ifndef SIPHON_PLANNER_MAPPING_MAP_DEVICES_H_
#define SIPHON_PLANNER_MAPPING_MAP_DEVICES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/ids.h"
#include "planner/mapping/parking_demand.h"
#include "planner/mapping/search_maps.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/topology.h"

namespace siphon {

// Two workers that send to each other in every microbatch.
struct Neighbours {
  WorkerId a;
  WorkerId b;
  friend bool operator==(const Neighbours&, const Neighbours&) = default;
};

// Workers w and w + 1 of each replica; replicas follow one after the other.
std::vector<Neighbours> PipelineNeighbours(int workers_per_replica, int replicas);

// How a map joins neighbours: the last two fields of a MapCost.
class NeighbourLinks {
 public:
  // `fabric` must outlive this. Requires: workers of `neighbours` are 0 or more.
  NeighbourLinks(const SwapFabric& fabric, std::vector<Neighbours> neighbours);

  // Fills in `unlinked` and `wires` of a map whose first workers are on `placed`; of the other
  // workers, the best that the free devices may give each pair.
  void Fill(absl::Span<const DeviceId> placed, MapCost& cost) const;

 private:
  const SwapFabric& fabric_;
  std::vector<Neighbours> neighbours_;
  bool any_linked_ = false;
  int most_wires_ = 0;
};

struct DeviceMapRequest {
  ParkingDemand demand;
  std::vector<Neighbours> neighbours;
  int64_t most_parts = 200'000;  // as in MapSearch
};

// The map by which MPress's score is highest (III.C, figure 6): the reciprocal of the longest D2D
// swap, each map with its best assignment of parked bytes to lenders (LeastParkingTime, whole
// bytes). Maps by which more bytes are parked come before it. Of equally good ones, those whose
// neighbours in the pipeline are linked, then those with the most wires between neighbours, then
// the lexicographically least. The paper takes any map on symmetric connections; here symmetry is
// what makes the search short.
//
// Errors: as CheckParkingDemand; InvalidArgument for neighbours that are no workers.
absl::StatusOr<FoundMap> MapDevices(const Topology& topology, const DeviceMapRequest& request);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_MAP_DEVICES_H_
