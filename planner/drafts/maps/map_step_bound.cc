#include "planner/drafts/maps/map_step_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "planner/drafts/search_effort.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/simulator/engine/head_tail_jobs.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<MapStepBound> MapStepBound::Of(const PlanningProblem& problem, DraftPlan draft) {
  SIPHON_ASSIGN_OR_RETURN(const WayGraph step, MakeWayGraph(problem, std::move(draft)));
  return MapStepBound(problem, step);
}

MapStepBound::MapStepBound(const PlanningProblem& problem, const WayGraph& step)
    : topology_(problem.topology),
      ways_(step.ways),
      copies_(CopiesOf(step.graph, step.ways, WorkerCount(problem.schedule))),
      sharing_(IsLarge(problem) ? Sharing::kBesidePath : Sharing::kInPath),
      path_(step.graph,
            sharing_ == Sharing::kInPath ? copies_.chains : std::vector<SharedPath::Chain>()),
      works_(step.graph.tasks().size()) {
  const TaskGraph& graph = step.graph;
  for (int task = 0; task < static_cast<int>(graph.tasks().size()); ++task) {
    const Task& facts = graph.tasks()[task];
    durations_.push_back(facts.duration);
    if (facts.lane && graph.IsQueue(*facts.lane)) host_steps_.push_back(task);
  }
}

MapStepBound::Copies MapStepBound::CopiesOf(const TaskGraph& graph, const PrivateWays& ways,
                                            int workers) {
  std::vector<bool> is_uplink(static_cast<size_t>(ways.count()));
  for (int worker = 0; worker < workers; ++worker) {
    is_uplink[ways.OfWorker(worker, PrivateWays::kToHost)] = true;
    is_uplink[ways.OfWorker(worker, PrivateWays::kFromHost)] = true;
  }
  Copies copies{.chains_of = std::vector<std::vector<int>>(is_uplink.size())};
  std::map<std::pair<Bytes, std::vector<int>>, int> kinds;
  std::map<std::pair<int, LaneId>, int> chains;
  for (int task = 0; task < static_cast<int>(graph.tasks().size()); ++task) {
    const Task& facts = graph.tasks()[task];
    if (!facts.path) continue;
    CopyKind kind{.bytes = facts.bytes};
    for (const CapacityId capacity : graph.paths()[facts.path->value]) {
      const int way = PrivateWays::WayWithRate(graph.capacities()[capacity.value].rate);
      kind.ways.push_back(way);
      if (is_uplink[way]) kind.uplink = way;
    }
    if (kind.uplink != kNone && facts.lane) {
      const auto [chain, added] =
          chains.try_emplace({kind.uplink, *facts.lane}, static_cast<int>(copies.chains.size()));
      if (added) {
        copies.chains.emplace_back();
        copies.chains_of[kind.uplink].push_back(chain->second);
      }
      copies.chains[chain->second].push_back(task);
    }
    const auto [known, added] =
        kinds.try_emplace({kind.bytes, kind.ways}, static_cast<int>(copies.kinds.size()));
    if (added) copies.kinds.push_back(std::move(kind));
    copies.kinds[known->second].tasks.push_back(task);
  }
  return copies;
}

void MapStepBound::SetDurations(const std::vector<WaySpeed>& speeds) {
  for (const CopyKind& kind : copies_.kinds) {
    int64_t rate = SwapFabric::kUnlimited;
    Nanos latency;
    for (const int way : kind.ways) {
      rate = std::min(rate, speeds[way].rate);
      latency += speeds[way].latency;
    }
    const Nanos duration = latency + LeastCopyTime(kind.bytes, rate);
    for (const int task : kind.tasks) durations_[task] = duration;
    if (kind.uplink == kNone) continue;
    const Nanos work = LeastCopyTime(kind.bytes, speeds[kind.uplink].rate);
    for (const int task : kind.tasks) works_[task] = work;
  }
}

// Both directions of those behind which more than one worker copies: the own path of one says as
// much.
std::vector<SharedPath::Machine> MapStepBound::UplinksOf(
    absl::Span<const DeviceId> placed, const std::vector<WaySpeed>& speeds) const {
  std::map<std::pair<int, PrivateWays::Kind>, SharedPath::Machine> uplinks;
  std::map<std::pair<int, PrivateWays::Kind>, int> workers;
  for (int worker = 0; worker < static_cast<int>(placed.size()); ++worker) {
    const std::optional<int> index = SwitchOf(topology_, placed[worker]);
    if (!index) continue;
    for (const PrivateWays::Kind direction : {PrivateWays::kToHost, PrivateWays::kFromHost}) {
      const int way = ways_.OfWorker(worker, direction);
      SharedPath::Machine& uplink = uplinks[{*index, direction}];
      const std::vector<int>& chains = copies_.chains_of[way];
      if (!chains.empty()) ++workers[{*index, direction}];
      uplink.chains.insert(uplink.chains.end(), chains.begin(), chains.end());
      uplink.latency = speeds[way].latency;
    }
  }
  std::vector<SharedPath::Machine> shared;
  for (auto& [key, uplink] : uplinks) {
    if (workers[key] > 1) shared.push_back(std::move(uplink));
  }
  return shared;
}

Nanos MapStepBound::LeastOfHost() const {
  if (ServerCount(topology_) > 1) return Nanos(0);  // who is in which server is open
  std::vector<HeadTailJob> jobs;
  for (const int task : host_steps_) {
    jobs.push_back({path_.begin()[task], durations_[task], path_.tail()[task]});
  }
  return LeastEnd(std::move(jobs));
}

Nanos MapStepBound::LeastOfUplink(const SharedPath::Machine& uplink) const {
  std::vector<HeadTailJob> jobs;
  for (const int chain : uplink.chains) {
    for (const int task : copies_.chains[chain]) {
      jobs.push_back({path_.begin()[task] + uplink.latency, works_[task], path_.tail()[task]});
    }
  }
  return LeastEnd(std::move(jobs));
}

Nanos MapStepBound::LeastStep(absl::Span<const DeviceId> placed) {
  const std::vector<WaySpeed> speeds = ways_.SpeedsOn(placed);
  SetDurations(speeds);
  const std::vector<SharedPath::Machine> uplinks = UplinksOf(placed, speeds);
  if (sharing_ == Sharing::kInPath) {
    path_.Run(durations_, works_, uplinks);
  } else {
    path_.Run(durations_, works_, {});
  }
  Nanos least = std::max(path_.length(), LeastOfHost());
  for (const SharedPath::Machine& uplink : uplinks) {
    least = std::max(least, LeastOfUplink(uplink));
  }
  return least;
}

}  // namespace siphon
