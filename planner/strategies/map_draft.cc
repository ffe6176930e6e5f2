#include "planner/strategies/map_draft.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "planner/mapping/map_devices.h"
#include "planner/mapping/parking_demand.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/simulator/simulate.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Far more than a server of eight devices needs for a proof.
constexpr int64_t kMostParts = 50'000;
// Looked at between two simulations, cheap.
constexpr int64_t kMostStepParts = 20'000;

bool MayMap(const PlanningProblem& problem) {
  const bool given = problem.mapping || problem.schedule.replicas > 1;
  return !given && DeviceCount(problem.topology) > 0 && !problem.capacity.empty();
}

// What a worker's swaps move over its device's uplink in a step.
struct HostTraffic {
  Bytes out;
  Bytes in;
};

// [worker]. Only actions that name a group count: no less passes the uplink.
std::vector<HostTraffic> HostTrafficOf(const SimulatedDraft& draft) {
  std::vector<HostTraffic> traffic;
  for (const std::vector<Action>& program : draft.schedule.programs) {
    HostTraffic& worker = traffic.emplace_back();
    for (const Action& action : program) {
      const bool leaves = action.kind == ActionKind::kSwapOut;
      const bool comes = action.kind == ActionKind::kSwapIn;
      if ((!leaves && !comes) || action.group == kWholeStage) continue;
      const auto& [group, choice] =
          draft.memory.stages[action.stage.value].groups[action.group.value];
      if (choice.placement != Placement::kHostSwap) continue;
      (leaves ? worker.out : worker.in) += group.bytes;
    }
  }
  return traffic;
}

// Every two devices joined as well as the best two are, whatever way the messages take, and ways to
// the host that take no time. Links that several channels would share have no limit: what shares a
// link may gain by coming later.
Topology FastestServer(const PlanningProblem& problem) {
  const Topology& topology = problem.topology;
  constexpr BytesPerSecond kNoLimit{0};
  bool limited = StageCount(problem.schedule) == WorkerCount(problem.schedule);
  BytesPerSecond fastest;
  Nanos latency(std::numeric_limits<int64_t>::max());
  const auto consider = [&](BytesPerSecond rate, Nanos latency_of_way) {
    limited = limited && rate > kNoLimit;
    fastest = std::max(fastest, rate);
    latency = std::min(latency, latency_of_way);
  };
  for (const TopologyLink& link : topology.links) consider(link.rate, link.latency);
  for (const PcieSwitch& uplink : topology.switches) {
    consider(uplink.to_host, uplink.latency);
    consider(uplink.from_host, uplink.latency);
    fastest = std::max({fastest, uplink.to_host_both, uplink.from_host_both});
  }
  if (topology.links.empty() && topology.switches.empty()) latency = Nanos(0);
  return WithHost(UniformTopology(DeviceCount(topology), limited ? fastest : kNoLimit, latency), 1,
                  {});
}

// The draft's step if no swap, nor the host's work, took any time, and messages as little as
// between the best two devices: programs are run in their order, so that nothing that takes longer
// makes it shorter.
absl::StatusOr<Nanos> ComputingTime(const PlanningProblem& problem, DraftPlan draft) {
  for (const Placement swap : {Placement::kPeerSwap, Placement::kHostSwap, Placement::kNvmeSwap}) {
    draft = Replace(std::move(draft), swap, Placement::kKeep, Placement::kKeep);
  }
  PlanningProblem free = problem;
  free.topology = FastestServer(problem);
  free.cores = {};
  free.host_step = Nanos(0);
  free.capacity.clear();
  const MemoryPlan memory = PlanOf(free, draft);
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule,
                          LowerMemoryPlan(free.schedule, memory, LoweringOf(draft)));
  SIPHON_ASSIGN_OR_RETURN(const SimulatedStep step,
                          Simulate(SimulationOf(free, IdentityMapping(WorkerCount(free.schedule)),
                                                memory, std::move(schedule))));
  return step.step_time;
}

// Rounded down.
Nanos LeastTime(Bytes bytes, BytesPerSecond rate) {
  if (rate <= BytesPerSecond(0)) return Nanos(0);
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  return Nanos(static_cast<int64_t>(absl::int128(bytes.value) * kNanosPerSecond / rate.value));
}

class StepMapSearch {
 public:
  StepMapSearch(DraftSimulator& simulator, SimulatedDraft draft, Nanos computing)
      : simulator_(simulator),
        topology_(simulator.problem().topology),
        fabric_(MakeSwapFabric(topology_)),
        links_(fabric_, PipelineNeighbours(WorkerCount(simulator.problem().schedule), 1)),
        best_(std::move(draft)),
        plan_(best_.draft),
        traffic_(HostTrafficOf(best_)),
        computing_(computing) {}

  absl::StatusOr<MappedDraft> Run(int64_t most_evaluations) {
    const MapSearch search{.workers = WorkerCount(simulator_.problem().schedule),
                           .scope = SymmetryScope::kWithHost,
                           .most_parts = kMostStepParts,
                           .most_evaluations = most_evaluations,
                           .seeds = {plan_.mapping}};
    SIPHON_ASSIGN_OR_RETURN(
        FoundMap found,
        SearchMaps(
            topology_, search, [this](const DeviceMapping& mapping) { return CostOf(mapping); },
            [this](absl::Span<const DeviceId> placed, const MapCost&) { return BoundOf(placed); }));
    return MappedDraft{.draft = std::move(best_), .found = std::move(found)};
  }

 private:
  absl::StatusOr<MapCost> CostOf(const DeviceMapping& mapping) {
    MapCost cost;
    links_.Fill(mapping.device_of_worker, cost);
    if (mapping == best_.draft.mapping) {
      cost.missing = best_.score.excess;
      cost.time = best_.score.step;
      return cost;
    }
    DraftPlan draft = plan_;
    draft.mapping = mapping;
    absl::StatusOr<SimulatedDraft> tried = simulator_.Run(std::move(draft));
    if (absl::IsResourceExhausted(tried.status())) {
      cost.missing = Bytes(std::numeric_limits<int64_t>::max());
      return cost;
    }
    SIPHON_RETURN_IF_ERROR(tried.status());
    cost.missing = tried->score.excess;
    cost.time = tried->score.step;
    if (tried->score < best_.score) best_ = *std::move(tried);
    return cost;
  }

  MapCost BoundOf(absl::Span<const DeviceId> placed) const {
    MapCost bound{.time = computing_};
    links_.Fill(placed, bound);
    std::vector<HostTraffic> uplinks(topology_.switches.size());
    for (size_t worker = 0; worker < placed.size(); ++worker) {
      const std::optional<int> uplink = SwitchOf(topology_, placed[worker]);
      if (!uplink) continue;
      uplinks[*uplink].out += traffic_[worker].out;
      uplinks[*uplink].in += traffic_[worker].in;
    }
    for (size_t uplink = 0; uplink < uplinks.size(); ++uplink) {
      const PcieSwitch& rates = topology_.switches[uplink];
      const Nanos out = LeastTime(uplinks[uplink].out, std::max(rates.to_host, rates.to_host_both));
      const Nanos in =
          LeastTime(uplinks[uplink].in, std::max(rates.from_host, rates.from_host_both));
      bound.time = std::max({bound.time, out, in});
    }
    return bound;
  }

  DraftSimulator& simulator_;
  const Topology& topology_;
  const SwapFabric fabric_;
  const NeighbourLinks links_;
  SimulatedDraft best_;
  const DraftPlan plan_;
  const std::vector<HostTraffic> traffic_;
  const Nanos computing_;
};

}  // namespace

absl::StatusOr<LenderMap> MapToLenders(const PlanningProblem& problem,
                                       const SimulatedDraft& simulated) {
  LenderMap mapped{.draft = simulated.draft};
  if (!MayMap(problem)) return mapped;
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : simulated.simulated.peak) peaks.push_back(Total(peak));
  const DeviceMapRequest request{
      .demand = PeakParkingDemand(peaks, problem.capacity),
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

absl::StatusOr<MappedDraft> MapByStepTime(DraftSimulator& simulator, SimulatedDraft draft,
                                          int64_t most_evaluations) {
  const PlanningProblem& problem = simulator.problem();
  if (!MayMap(problem) || problem.score == MappingScore::kSwapTime) {
    return MappedDraft{.draft = std::move(draft)};
  }
  SIPHON_ASSIGN_OR_RETURN(const Nanos computing, ComputingTime(problem, draft.draft));
  return StepMapSearch(simulator, std::move(draft), computing).Run(most_evaluations);
}

}  // namespace siphon
