#ifndef SIPHON_PLANNER_DRAFTS_STEP_MAP_COSTS_H_
#define SIPHON_PLANNER_DRAFTS_STEP_MAP_COSTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/maps/map_step_bound.h"
#include "planner/drafts/maps/map_steps.h"
#include "planner/drafts/maps/way_graph.h"
#include "planner/mapping/map_devices.h"
#include "planner/mapping/parking_bound.h"
#include "planner/mapping/parking_demand.h"
#include "planner/mapping/search_maps.h"
#include "planner/mapping/swap_fabric.h"

namespace siphon {

// The simulated step of a draft on many maps, in lanes that want nothing of each other. Of a map
// that is no better than the best so far nothing else may be said: then its time is a nanosecond
// more than the best one has, or had when a map like it was asked for.
class StepMapCosts : public MapCosts {
 public:
  // Of a search that asks for so many `at_once`. `step` is the draft's. The simulator must outlive
  // this.
  StepMapCosts(DraftSimulator& simulator, SimulatedDraft draft, const WayGraph& step, int at_once);
  // On any map workers give no less and lend no more than that. Requires: CheckParkingDemand; it
  // outlives this.
  void BoundRoom(const ParkingDemand& demand);

  // Of all maps so far, and the draft that it began with, that with the least cost, and of those
  // the first by its devices.
  SimulatedDraft TakeBest() { return std::move(best_); }

  absl::StatusOr<std::vector<MapCost>> Exact(absl::Span<const DeviceMapping> maps) override;
  std::vector<MapCost> Bounds(absl::Span<const PlacedWorkers> placed) override;

 private:
  using Key = std::vector<int64_t>;

  // In a lane: the best of its maps.
  struct Tried {
    absl::Status status;
    std::optional<SimulatedDraft> best;
    MapCost cost;
  };
  // By how many workers are placed: bounds, and maps that need not be simulated for them.
  struct Bounded {
    int64_t asked = 0;
    int64_t spared = 0;
  };

  const PlanningProblem& problem() const { return simulator_.problem(); }
  int LanesFor(size_t asked) const;
  DraftSimulator& SimulatorOf(int lane);

  Key KeyOf(const DeviceMapping& mapping) const;
  bool IsLess(const MapCost& cost, const DeviceMapping& mapping) const;
  bool MayBeLeast(const Key& key, const DeviceMapping& mapping, MapCost& cost) const;
  absl::Status Ask(absl::Span<const DeviceMapping> maps, absl::Span<const size_t> asked,
                   absl::Span<const Key> keys, std::vector<MapCost>& costs);
  absl::Status Try(const DeviceMapping& mapping, const Key& key, int lane, Tried& tried,
                   MapCost& cost);
  void TakeIfLess(Tried tried);

  bool IsWorthBounding(size_t workers) const;
  void CountBound(const PlacedWorkers& placed, const MapCost& bound);

  DraftSimulator& simulator_;
  const SwapFabric fabric_;
  const NeighbourLinks links_;
  SimulatedDraft best_;
  MapCost least_;  // of `best_`
  const DraftPlan plan_;
  std::optional<ParkingBound> room_;            // none: nothing is known of it
  std::vector<MapStepBound> step_bounds_;       // [lane]
  std::vector<std::optional<MapSteps>> steps_;  // [lane]; none: a map changes too much
  absl::flat_hash_map<Key, Nanos> alike_;       // steps, or more than the least when it was asked
  const bool bounds_all_;
  std::vector<Bounded> bounded_;                           // [workers placed]
  std::vector<std::optional<DraftSimulator>> simulators_;  // [lane]; none: not needed so far
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_STEP_MAP_COSTS_H_
