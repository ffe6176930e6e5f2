#include "planner/drafts/maps/step_map_costs.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "planner/drafts/side_by_side.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Of maps that are asked for at once: a lane has to be worth a simulator of its own.
constexpr size_t kFewestInLane = 8;

// Bounds of as many workers placed, before it is asked whether they are worth it.
constexpr int64_t kFewestBounded = 64;

size_t LanesWorth(size_t asked) { return std::max<size_t>(1, asked / kFewestInLane); }

MapCost CostOf(const SimulatedDraft& draft, const NeighbourLinks& links) {
  MapCost cost{.missing = draft.score.excess, .time = draft.score.step};
  links.Fill(draft.draft.mapping.device_of_worker, cost);
  return cost;
}

// Maps that begin with so many workers placed.
int64_t Completions(size_t placed, int workers, int devices) {
  int64_t maps = 1;
  for (auto worker = static_cast<int>(placed); worker < workers; ++worker) maps *= devices - worker;
  return maps;
}

}  // namespace

StepMapCosts::StepMapCosts(DraftSimulator& simulator, SimulatedDraft draft, const WayGraph& step,
                           int at_once)
    : simulator_(simulator),
      fabric_(MakeSwapFabric(simulator.problem().topology)),
      links_(fabric_, PipelineNeighbours(WorkerCount(simulator.problem().schedule), 1)),
      best_(std::move(draft)),
      least_(CostOf(best_, links_)),
      plan_(best_.draft),
      step_bounds_(std::min(LanesWorth(static_cast<size_t>(at_once)),
                            static_cast<size_t>(problem().side_by_side.threads)),
                   MapStepBound(problem(), step)),
      steps_(step_bounds_.size(), MapSteps::Of(problem(), plan_, step)),
      bounds_all_(at_once == 1 || !steps_.front()),
      bounded_(static_cast<size_t>(WorkerCount(problem().schedule)) + 1),
      simulators_(step_bounds_.size()) {}

void StepMapCosts::BoundRoom(const ParkingDemand& demand) {
  room_.emplace(fabric_, demand);
  for (MapStepBound& bound : step_bounds_) bound.LendOnly(demand);
}

int StepMapCosts::LanesFor(size_t asked) const {
  return static_cast<int>(std::min(LanesWorth(asked), step_bounds_.size()));
}

// That of the search, or the lane's own, which never meets a map again.
DraftSimulator& StepMapCosts::SimulatorOf(int lane) {
  if (lane == 0) return simulator_;
  std::optional<DraftSimulator>& own = simulators_[static_cast<size_t>(lane)];
  if (!own) own.emplace(problem(), 1).LendBy(simulator_.lending());
  return *own;
}

absl::StatusOr<std::vector<MapCost>> StepMapCosts::Exact(absl::Span<const DeviceMapping> maps) {
  std::vector<MapCost> costs(maps.size());
  std::vector<Key> keys;
  std::vector<size_t> pending;
  for (size_t map = 0; map < maps.size(); ++map) {
    links_.Fill(maps[map].device_of_worker, costs[map]);
    keys.push_back(KeyOf(maps[map]));
    pending.push_back(map);
  }
  while (!pending.empty()) {
    std::vector<size_t> asked;
    std::vector<size_t> later;  // behind one that is like them
    absl::flat_hash_set<Key> asked_keys;
    for (const size_t map : pending) {
      if (!MayBeLeast(keys[map], maps[map], costs[map])) continue;
      const bool is_first = keys[map].empty() || asked_keys.insert(keys[map]).second;
      (is_first ? asked : later).push_back(map);
    }
    SIPHON_RETURN_IF_ERROR(Ask(maps, asked, keys, costs));
    pending = std::move(later);
  }
  return costs;
}

// Empty: nothing is known of maps that are alike.
StepMapCosts::Key StepMapCosts::KeyOf(const DeviceMapping& mapping) const {
  const std::optional<MapSteps>& steps = steps_.front();
  return steps ? steps->KeyOf(mapping.device_of_worker) : Key();
}

bool StepMapCosts::IsLess(const MapCost& cost, const DeviceMapping& mapping) const {
  return std::tie(cost, mapping.device_of_worker) <
         std::tie(least_, best_.draft.mapping.device_of_worker);
}

// Whether the map, of which `cost` has the links, may be better than all so far; if not, the cost
// becomes one that is not.
bool StepMapCosts::MayBeLeast(const Key& key, const DeviceMapping& mapping, MapCost& cost) const {
  const auto found = alike_.find(key);
  if (found == alike_.end()) return true;
  MapCost known = cost;
  known.time = found->second;
  if (IsLess(known, mapping)) return true;
  cost = known;
  return false;
}

// Requires: no two of the maps are alike, as far as is known.
absl::Status StepMapCosts::Ask(absl::Span<const DeviceMapping> maps, absl::Span<const size_t> asked,
                               absl::Span<const Key> keys, std::vector<MapCost>& costs) {
  const int lanes = LanesFor(asked.size());
  std::vector<Tried> tried(static_cast<size_t>(lanes));
  RunSideBySide(problem(), lanes, [&](int lane) {
    Tried& own = tried[static_cast<size_t>(lane)];
    for (size_t index = static_cast<size_t>(lane); index < asked.size(); index += tried.size()) {
      const size_t map = asked[index];
      own.status = Try(maps[map], keys[map], lane, own, costs[map]);
      if (!own.status.ok()) return;
    }
  });
  for (int lane = 0; lane < lanes; ++lane) {
    const auto index = static_cast<size_t>(lane);
    SIPHON_RETURN_IF_ERROR(tried[index].status);
    if (simulators_[index] && simulators_[index]->has_refused()) simulator_.CountRefusal();
    TakeIfLess(std::move(tried[index]));
  }
  for (const size_t map : asked) {
    if (keys[map].empty() || costs[map].missing > Bytes(0)) continue;
    alike_.try_emplace(keys[map], costs[map].time);
  }
  return absl::OkStatus();
}

void StepMapCosts::TakeIfLess(Tried tried) {
  if (!tried.best || !IsLess(tried.cost, tried.best->draft.mapping)) return;
  best_ = *std::move(tried.best);
  least_ = tried.cost;
}

absl::Status StepMapCosts::Try(const DeviceMapping& mapping, const Key& key, int lane, Tried& tried,
                               MapCost& cost) {
  if (mapping == best_.draft.mapping) {
    cost = least_;
    return absl::OkStatus();
  }
  // Where the best one fits, no other is better that takes longer, whether that fits or not.
  if (!key.empty() && !alike_.contains(key) && least_.missing == Bytes(0)) {
    const std::optional<Nanos> step =
        steps_[static_cast<size_t>(lane)]->StepWithin(mapping.device_of_worker, least_.time);
    MapCost known = cost;
    known.time = step ? *step : least_.time + Nanos(1);
    if (!IsLess(known, mapping)) {
      cost = known;
      return absl::OkStatus();
    }
  }
  DraftPlan draft = plan_;
  draft.mapping = mapping;
  absl::StatusOr<SimulatedDraft> simulated = SimulatorOf(lane).Run(std::move(draft));
  if (absl::IsResourceExhausted(simulated.status())) {
    cost.missing = Bytes(std::numeric_limits<int64_t>::max());
    return absl::OkStatus();
  }
  SIPHON_RETURN_IF_ERROR(simulated.status());
  cost.missing = simulated->score.excess;
  cost.time = simulated->score.step;
  if (tried.best && std::tie(tried.cost, tried.best->draft.mapping.device_of_worker) <=
                        std::tie(cost, mapping.device_of_worker)) {
    return absl::OkStatus();
  }
  tried.best = *std::move(simulated);
  tried.cost = cost;
  return absl::OkStatus();
}

std::vector<MapCost> StepMapCosts::Bounds(absl::Span<const PlacedWorkers> placed) {
  std::vector<MapCost> bounds(placed.size());
  const int lanes = LanesFor(placed.size());
  RunSideBySide(problem(), lanes, [&](int lane) {
    for (auto part = static_cast<size_t>(lane); part < placed.size();
         part += static_cast<size_t>(lanes)) {
      const std::vector<DeviceId>& devices = placed[part].devices;
      if (room_) bounds[part].missing = room_->UnparkedOf(devices);
      // Of maps without room for all nothing is known of times.
      if (bounds[part].missing == Bytes(0) && IsWorthBounding(devices.size())) {
        bounds[part].time = step_bounds_[static_cast<size_t>(lane)].LeastStep(devices);
      }
      links_.Fill(devices, bounds[part]);
    }
  });
  for (size_t part = 0; part < placed.size(); ++part) CountBound(placed[part], bounds[part]);
  return bounds;
}

// Whether a bound, which takes about as long as a map's step, spares more of these; a search that
// does not mean to go through all maps goes by bounds.
bool StepMapCosts::IsWorthBounding(size_t workers) const {
  const Bounded& bounded = bounded_[workers];
  return bounds_all_ || bounded.asked < kFewestBounded || bounded.spared > bounded.asked;
}

void StepMapCosts::CountBound(const PlacedWorkers& placed, const MapCost& bound) {
  const size_t workers = placed.devices.size();
  if (!IsWorthBounding(workers)) return;
  Bounded& bounded = bounded_[workers];
  ++bounded.asked;
  if (placed.before >= least_ || bound < least_) return;
  bounded.spared +=
      Completions(workers, WorkerCount(problem().schedule), DeviceCount(problem().topology));
}

}  // namespace siphon
