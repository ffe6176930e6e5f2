#include "planner/drafts/maps/map_draft.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "planner/drafts/maps/map_step_bound.h"
#include "planner/drafts/maps/step_map_costs.h"
#include "planner/drafts/maps/way_graph.h"
#include "planner/lowering/make_groups.h"
#include "planner/mapping/map_devices.h"
#include "planner/mapping/parking_demand.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Far more than a server of eight devices needs for a proof.
constexpr int64_t kMostParts = 50'000;

bool MayMap(const PlanningProblem& problem) {
  const bool given = problem.mapping || problem.schedule.replicas > 1;
  return !given && DeviceCount(problem.topology) > 0 && !problem.capacity.empty();
}

bool MayMapByStepTime(const PlanningProblem& problem) {
  return MayMap(problem) && problem.score == MappingScore::kStepTime;
}

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
  SIPHON_ASSIGN_OR_RETURN(const WayGraph step, MakeWayGraph(problem, draft.draft));
  const MapSearch search{.workers = WorkerCount(problem.schedule),
                         .scope = SymmetryScope::kWithHost,
                         .most_parts = effort.parts,
                         .most_evaluations = effort.maps,
                         .seeds = {draft.draft.mapping},
                         .at_once = effort.at_once};
  std::optional<ParkingDemand> demand;
  if (Uses(draft.draft, Placement::kPeerSwap)) {
    SIPHON_ASSIGN_OR_RETURN(demand, simulator.DemandOnAnyMap(draft.draft));
  }
  StepMapCosts costs(simulator, std::move(draft), step, effort.at_once);
  if (demand && CheckParkingDemand(*demand, problem.topology).ok()) costs.BoundRoom(*demand);
  SIPHON_ASSIGN_OR_RETURN(FoundMap found, SearchMaps(problem.topology, search, costs));
  return MappedDraft{.draft = costs.TakeBest(), .found = std::move(found)};
}

absl::StatusOr<Nanos> LeastStepOfMaps(const PlanningProblem& problem, const SimulatedDraft& draft) {
  if (!MayMapByStepTime(problem)) return draft.score.step;
  SIPHON_ASSIGN_OR_RETURN(MapStepBound bound, MapStepBound::Of(problem, draft.draft));
  return bound.LeastStep({});
}

}  // namespace siphon
