#ifndef SIPHON_PLANNER_MAPPING_SEARCH_MAPS_H_
#define SIPHON_PLANNER_MAPPING_SEARCH_MAPS_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/topology.h"
#include "planner/topology_symmetry.h"
#include "planner/units.h"

namespace siphon {

// What a map costs: compared field by field in this order, of which the last counts for the map.
struct MapCost {
  Bytes missing;     // for which there is no room; of maps that fit 0
  Nanos time;        // of the step, or of the longest swap
  int unlinked = 0;  // neighbours in the pipeline whose devices no link joins
  int wires = 0;     // between neighbours, all together: the more the better
  friend bool operator==(const MapCost&, const MapCost&) = default;
  friend std::strong_ordering operator<=>(const MapCost& a, const MapCost& b);
};

struct MapSearch {
  int workers = 0;
  // What the costs depend on: maps that differ by a symmetry of it have to cost the same.
  SymmetryScope scope = SymmetryScope::kWithHost;
  int64_t most_parts = 200'000;        // maps of some of the workers for which a bound is asked
  int64_t most_evaluations = 200'000;  // maps for which the exact cost is asked; at least one is
  std::vector<DeviceMapping> seeds;    // maps to begin with, asked for first
  // Whose turn it is to be looked at is asked for together, so many, in best-first order. More than
  // one: for who can answer several at once and means to go through all maps; what has become
  // needless meanwhile is asked all the same, but not a bound of whoever has but one device left to
  // take. No limit is passed by it but that of parts.
  int at_once = 1;
};

struct FoundMap {
  DeviceMapping mapping;
  MapCost cost;
  MapCost bound;        // no map costs less
  bool proven = false;  // no map costs less than this one, and none of the same cost is before it
  int64_t parts = 0;
  int64_t evaluations = 0;
  friend bool operator==(const FoundMap&, const FoundMap&) = default;
};

// Exact, and possibly expensive.
using ExactMapCost = absl::FunctionRef<absl::StatusOr<MapCost>(const DeviceMapping&)>;
// Cheap: no completion of the map, whose first workers are on `placed`, costs less. `before` is a
// bound for fewer workers placed.
using MapBound =
    absl::FunctionRef<MapCost(absl::Span<const DeviceId> placed, const MapCost& before)>;

// Some workers on devices: the first ones, in order.
struct PlacedWorkers {
  std::vector<DeviceId> devices;
  MapCost before;  // a bound for fewer of them placed
};

// The same for several maps at once.
class MapCosts {
 public:
  virtual ~MapCosts() = default;
  // [map]. For one that is no better than the best of those asked for before, equal costs by the
  // order of maps, any cost that is no better is good enough.
  virtual absl::StatusOr<std::vector<MapCost>> Exact(absl::Span<const DeviceMapping> maps) = 0;
  // [of `placed`]
  virtual std::vector<MapCost> Bounds(absl::Span<const PlacedWorkers> placed) = 0;
};

// The map of workers to devices with the least cost; of equal ones the lexicographically least.
// Workers get devices in their order; maps that differ by a symmetry of the topology are met once.
//
// The first map is the best of the seeds and that of a greedy descent by bounds, improved by
// exchanges as long as they help (until half of the evaluations are made). Then best first, so that
// `bound` is as good as it can be when a limit ends the search; what is left of the evaluations
// goes to exchanges again. Deterministic.
//
// Errors: InvalidArgument when there are fewer devices than workers, or a seed is no map of all
// workers; whatever `cost` fails with.
absl::StatusOr<FoundMap> SearchMaps(const Topology& topology, const MapSearch& search,
                                    MapCosts& costs);
absl::StatusOr<FoundMap> SearchMaps(const Topology& topology, const MapSearch& search,
                                    ExactMapCost cost, MapBound bound);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_SEARCH_MAPS_H_
