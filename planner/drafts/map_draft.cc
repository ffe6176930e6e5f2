#include "planner/drafts/map_draft.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/drafts/map_step_bound.h"
#include "planner/drafts/side_by_side.h"
#include "planner/lowering/make_groups.h"
#include "planner/mapping/map_devices.h"
#include "planner/mapping/parking_demand.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Far more than a server of eight devices needs for a proof.
constexpr int64_t kMostParts = 50'000;

// Of maps that are asked for at once: a lane has to be worth a simulator of its own.
constexpr size_t kFewestInLane = 8;

bool MayMap(const PlanningProblem& problem) {
  const bool given = problem.mapping || problem.schedule.replicas > 1;
  return !given && DeviceCount(problem.topology) > 0 && !problem.capacity.empty();
}

bool MayMapByStepTime(const PlanningProblem& problem) {
  return MayMap(problem) && problem.score == MappingScore::kStepTime;
}

// The simulated step of a draft on many maps: in lanes that want nothing of each other.
class StepMapCosts : public MapCosts {
 public:
  // Of a search that asks for so many `at_once`.
  StepMapCosts(DraftSimulator& simulator, SimulatedDraft draft, const MapStepBound& step_bound,
               int at_once)
      : simulator_(simulator),
        fabric_(MakeSwapFabric(simulator.problem().topology)),
        links_(fabric_, PipelineNeighbours(WorkerCount(simulator.problem().schedule), 1)),
        best_(std::move(draft)),
        plan_(best_.draft),
        step_bounds_(std::min(LanesWorth(static_cast<size_t>(at_once)),
                              static_cast<size_t>(problem().side_by_side.threads)),
                     step_bound),
        simulators_(step_bounds_.size()) {}

  // Of all maps so far, and the draft that it began with.
  SimulatedDraft TakeBest() { return std::move(best_); }

  absl::StatusOr<std::vector<MapCost>> Exact(absl::Span<const DeviceMapping> maps) override {
    std::vector<MapCost> costs(maps.size());
    const int lanes = LanesFor(maps.size());
    std::vector<Tried> tried(static_cast<size_t>(lanes));
    RunSideBySide(problem(), lanes, [&](int lane) {
      Tried& own = tried[static_cast<size_t>(lane)];
      DraftSimulator& simulator = SimulatorOf(lane);
      for (size_t map = static_cast<size_t>(lane); map < maps.size(); map += tried.size()) {
        own.status = Try(maps[map], map, simulator, own, costs[map]);
        if (!own.status.ok()) return;
      }
    });
    for (int lane = 0; lane < lanes; ++lane) {
      SIPHON_RETURN_IF_ERROR(tried[static_cast<size_t>(lane)].status);
      if (SimulatorOf(lane).has_refused()) simulator_.CountRefusal();
    }
    // The first one of the best, as if one map had been tried after the other.
    const auto best = std::min_element(tried.begin(), tried.end(), IsBetter);
    if (best->best && best->best->score < best_.score) best_ = *std::move(best->best);
    return costs;
  }

  std::vector<MapCost> Bounds(absl::Span<const PlacedWorkers> placed) override {
    std::vector<MapCost> bounds(placed.size());
    const int lanes = LanesFor(placed.size());
    RunSideBySide(problem(), lanes, [&](int lane) {
      for (auto part = static_cast<size_t>(lane); part < placed.size();
           part += static_cast<size_t>(lanes)) {
        const std::vector<DeviceId>& devices = placed[part].devices;
        bounds[part].time = step_bounds_[static_cast<size_t>(lane)].LeastStep(devices);
        links_.Fill(devices, bounds[part]);
      }
    });
    return bounds;
  }

 private:
  // In a lane.
  struct Tried {
    absl::Status status;
    std::optional<SimulatedDraft> best;
    size_t map = 0;  // of `best`
  };
  static bool IsBetter(const Tried& a, const Tried& b) {
    if (!a.best || !b.best) return a.best.has_value() && !b.best;
    return std::tie(a.best->score, a.map) < std::tie(b.best->score, b.map);
  }

  const PlanningProblem& problem() const { return simulator_.problem(); }
  static size_t LanesWorth(size_t asked) { return std::max<size_t>(1, asked / kFewestInLane); }
  int LanesFor(size_t asked) const {
    return static_cast<int>(std::min(LanesWorth(asked), step_bounds_.size()));
  }

  // That of the search, or the lane's own, which never meets a map again.
  DraftSimulator& SimulatorOf(int lane) {
    if (lane == 0) return simulator_;
    std::optional<DraftSimulator>& own = simulators_[static_cast<size_t>(lane)];
    if (!own) own.emplace(problem(), 1).LendBy(simulator_.lending());
    return *own;
  }

  absl::Status Try(const DeviceMapping& mapping, size_t number, DraftSimulator& simulator,
                   Tried& lane, MapCost& cost) const {
    links_.Fill(mapping.device_of_worker, cost);
    if (mapping == best_.draft.mapping) {
      cost.missing = best_.score.excess;
      cost.time = best_.score.step;
      return absl::OkStatus();
    }
    DraftPlan draft = plan_;
    draft.mapping = mapping;
    absl::StatusOr<SimulatedDraft> tried = simulator.Run(std::move(draft));
    if (absl::IsResourceExhausted(tried.status())) {
      cost.missing = Bytes(std::numeric_limits<int64_t>::max());
      return absl::OkStatus();
    }
    SIPHON_RETURN_IF_ERROR(tried.status());
    cost.missing = tried->score.excess;
    cost.time = tried->score.step;
    if (lane.best && lane.best->score <= tried->score) return absl::OkStatus();
    lane.best = *std::move(tried);
    lane.map = number;
    return absl::OkStatus();
  }

  DraftSimulator& simulator_;
  const SwapFabric fabric_;
  const NeighbourLinks links_;
  SimulatedDraft best_;
  const DraftPlan plan_;
  std::vector<MapStepBound> step_bounds_;                  // [lane]
  std::vector<std::optional<DraftSimulator>> simulators_;  // [lane]; none: not needed so far
};

// Of each worker, the bytes of its layers' activations at its fullest, ascending.
std::vector<std::vector<Bytes>> ActivationGroups(const PlanningProblem& problem,
                                                 const SimulatedStep& step) {
  std::vector<std::vector<Bytes>> groups(step.peak_live_activations.size());
  std::vector<int> stages(groups.size());
  for (const WorkerId worker : problem.schedule.worker_of_stage) ++stages[worker.value];
  for (size_t stage = 0; stage < problem.partition.stages.size(); ++stage) {
    const int worker = problem.schedule.worker_of_stage[stage].value;
    const int live = step.peak_live_activations[worker];
    const StageRange& layers = problem.partition.stages[stage];
    for (int layer = layers.begin; layer < layers.end; ++layer) {
      const TensorGroup group =
          GroupOf(problem.profile, layers, GroupKind::kActivations, {layer, layer + 1});
      groups[worker].push_back(group.bytes * ((live + stages[worker] - 1) / stages[worker]));
    }
  }
  for (std::vector<Bytes>& sizes : groups) std::sort(sizes.begin(), sizes.end());
  return groups;
}

// The smallest group that is enough, else the largest, and so on with the rest.
Bytes InGroups(Bytes needed, std::vector<Bytes> groups) {
  Bytes parked;
  while (parked < needed && !groups.empty()) {
    auto enough = std::lower_bound(groups.begin(), groups.end(), needed - parked);
    if (enough == groups.end()) --enough;
    parked += *enough;
    groups.erase(enough);
  }
  return std::max(parked, needed);
}

}  // namespace

absl::StatusOr<LenderMap> MapToLenders(const PlanningProblem& problem,
                                       const SimulatedDraft& simulated, ParkedAs parked) {
  LenderMap mapped{.draft = simulated.draft};
  if (!MayMap(problem)) return mapped;
  ParkingDemand demand = PeakParkingDemand(TotalPeaks(simulated.simulated), problem.capacity);
  if (parked == ParkedAs::kGroups) {
    const auto groups = ActivationGroups(problem, simulated.simulated);
    for (size_t worker = 0; worker < groups.size(); ++worker) {
      Bytes& needed = demand.workers[worker].parked;
      needed = InGroups(needed, groups[worker]);
    }
  }
  const DeviceMapRequest request{
      .demand = std::move(demand),
      .neighbours = PipelineNeighbours(WorkerCount(problem.schedule), problem.schedule.replicas),
      .most_parts = kMostParts};
  SIPHON_ASSIGN_OR_RETURN(mapped.found, MapDevices(problem.topology, request));
  mapped.draft.mapping = mapped.found->mapping;
  return mapped;
}

MapProof ProofOf(MappingScore score, const FoundMap& found) {
  // Maps that are as good but for the links between neighbours are no better for a reader.
  const bool least =
      found.bound.missing == found.cost.missing && found.bound.time == found.cost.time;
  return {.score = score,
          .missing = found.cost.missing,
          .time = found.cost.time,
          .least_missing = found.bound.missing,
          .least_time = found.bound.time,
          .proven = found.proven || least,
          .evaluated = found.evaluations,
          .bounded = found.parts};
}

std::optional<double> GapOf(const MapProof& map) {
  if (map.proven) return 0;
  if (map.missing > map.least_missing || map.least_time == Nanos(0)) return std::nullopt;
  const auto least = static_cast<double>(map.least_time.value);
  return (static_cast<double>(map.time.value) - least) / least;
}

std::optional<MapEffort> MapsLeftToProve(const PlanningProblem& problem, const MapProof& map) {
  if (map.proven) return std::nullopt;
  const MapEffort effort = MapsToProve(problem);
  if (effort.maps <= MapsFor(problem).maps) return std::nullopt;
  return effort;
}

absl::StatusOr<MappedDraft> MapByStepTime(DraftSimulator& simulator, SimulatedDraft draft,
                                          const MapEffort& effort) {
  const PlanningProblem& problem = simulator.problem();
  if (!MayMapByStepTime(problem)) return MappedDraft{.draft = std::move(draft)};
  SIPHON_ASSIGN_OR_RETURN(const MapStepBound bound, MapStepBound::Of(problem, draft.draft));
  const MapSearch search{.workers = WorkerCount(problem.schedule),
                         .scope = SymmetryScope::kWithHost,
                         .most_parts = effort.parts,
                         .most_evaluations = effort.maps,
                         .seeds = {draft.draft.mapping},
                         .at_once = effort.at_once};
  StepMapCosts costs(simulator, std::move(draft), bound, effort.at_once);
  SIPHON_ASSIGN_OR_RETURN(FoundMap found, SearchMaps(problem.topology, search, costs));
  return MappedDraft{.draft = costs.TakeBest(), .found = std::move(found)};
}

absl::StatusOr<Nanos> LeastStepOfMaps(const PlanningProblem& problem, const SimulatedDraft& draft) {
  if (!MayMapByStepTime(problem)) return draft.score.step;
  SIPHON_ASSIGN_OR_RETURN(MapStepBound bound, MapStepBound::Of(problem, draft.draft));
  return bound.LeastStep({});
}

}  // namespace siphon
