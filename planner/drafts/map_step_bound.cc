#include "planner/drafts/map_step_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "planner/drafts/search_effort.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/schedule_index.h"
#include "planner/simulator/head_tail_jobs.h"
#include "planner/simulator/step_graph.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::vector<PrivateWays::Message> MessagesOf(const Schedule& schedule) {
  std::vector<PrivateWays::Message> messages;
  for (int stage = 0; stage + 1 < StageCount(schedule); ++stage) {
    const WorkerId from = schedule.worker_of_stage[stage];
    const WorkerId to = schedule.worker_of_stage[stage + 1];
    if (from == to) continue;
    messages.emplace_back(from, to);
    messages.emplace_back(to, from);
  }
  std::sort(messages.begin(), messages.end());
  messages.erase(std::unique(messages.begin(), messages.end()), messages.end());
  return messages;
}

// Rounded down.
Nanos LeastTime(Bytes bytes, int64_t rate) {
  if (rate == SwapFabric::kUnlimited || rate == 0) return Nanos(0);
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  return Nanos(static_cast<int64_t>(absl::int128(bytes.value) * kNanosPerSecond / rate));
}

// Each group that goes to lenders goes to the worker's own. Of all ways to share bytes among
// lenders, some lender takes as long as all of them together would at their best, or longer; but
// CutStripes may cut two granules from its stripe, and then nothing is left of a small one.
void ParkAlone(const PlanningProblem& problem, const PrivateWays& ways, MemoryPlan& memory) {
  const Bytes cut = ways.AllFor(problem.granule * 2);
  for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
    const int worker = problem.schedule.worker_of_stage[stage].value;
    for (auto& [group, choice] : memory.stages[stage].groups) {
      if (choice.placement != Placement::kPeerSwap) continue;
      const Bytes free = std::min(cut, group.bytes);
      choice.stripes = {{ways.FreeLender(), free}};
      if (free < group.bytes) choice.stripes.push_back({ways.LenderOf(worker), group.bytes - free});
    }
  }
}

}  // namespace

absl::StatusOr<MapStepBound> MapStepBound::Of(const PlanningProblem& problem, DraftPlan draft) {
  const int workers = WorkerCount(problem.schedule);
  PrivateWays ways(problem.topology, workers, MessagesOf(problem.schedule));
  for (int worker = 0; worker < workers; ++worker) {
    draft.lenders[worker] = {{ways.LenderOf(worker), 1}};
  }
  draft.mapping = IdentityMapping(workers);
  MemoryPlan memory = PlanOf(problem, draft);
  ParkAlone(problem, ways, memory);
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule,
                          LowerMemoryPlan(problem.schedule, memory, LoweringOf(draft)));
  SimulationInput input =
      SimulationOf(problem, draft.mapping, std::move(memory), std::move(schedule));
  input.cores = {};
  input.topology = ways.Numbered();
  SIPHON_ASSIGN_OR_RETURN(
      const ScheduleIndex index,
      ScheduleIndex::Build(input.schedule, ScheduleIndex::Actions::kWithoutGroups));
  SIPHON_ASSIGN_OR_RETURN(const StepGraph step, BuildStepGraph(input, index));
  Copies copies = CopiesOf(step.graph, ways, workers);
  const Sharing sharing = IsLarge(problem) ? Sharing::kBesidePath : Sharing::kInPath;
  return MapStepBound(problem.topology, std::move(ways), step.graph, std::move(copies), sharing);
}

MapStepBound::MapStepBound(const Topology& topology, PrivateWays ways, const TaskGraph& graph,
                           Copies copies, Sharing sharing)
    : topology_(topology),
      ways_(std::move(ways)),
      copies_(std::move(copies)),
      sharing_(sharing),
      path_(graph, sharing == Sharing::kInPath ? copies_.chains : std::vector<SharedPath::Chain>()),
      works_(graph.tasks().size()) {
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
    const Nanos duration = latency + LeastTime(kind.bytes, rate);
    for (const int task : kind.tasks) durations_[task] = duration;
    if (kind.uplink == kNone) continue;
    const Nanos work = LeastTime(kind.bytes, speeds[kind.uplink].rate);
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
