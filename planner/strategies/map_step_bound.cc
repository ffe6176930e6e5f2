#include "planner/strategies/map_step_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/schedule_index.h"
#include "planner/simulator/head_tail_jobs.h"
#include "planner/simulator/step_graph.h"
#include "planner/status.h"
#include "planner/strategies/lower_memory_plan.h"

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
  return MapStepBound(problem.topology, std::move(ways), step.graph);
}

MapStepBound::MapStepBound(const Topology& topology, PrivateWays ways, const TaskGraph& graph)
    : topology_(topology), ways_(std::move(ways)), path_(graph), copies_(ways_.count()) {
  std::map<std::pair<Bytes, std::vector<int>>, int> known;
  for (int task = 0; task < static_cast<int>(graph.tasks().size()); ++task) {
    const Task& facts = graph.tasks()[task];
    durations_.push_back(facts.duration);
    if (facts.lane && graph.IsQueue(*facts.lane)) host_steps_.push_back(task);
    if (!facts.path) continue;
    std::vector<int> through;
    for (const CapacityId capacity : graph.paths()[facts.path->value]) {
      through.push_back(PrivateWays::WayWithRate(graph.capacities()[capacity.value].rate));
    }
    const auto [found, added] =
        known.try_emplace({facts.bytes, through}, static_cast<int>(kinds_.size()));
    if (added) kinds_.push_back({.bytes = facts.bytes, .ways = through});
    kinds_[found->second].tasks.push_back(task);
    for (const int way : through) copies_[way].push_back({task, found->second});
  }
}

void MapStepBound::SetDurations(const std::vector<WaySpeed>& speeds) {
  for (CopyKind& kind : kinds_) {
    int64_t rate = SwapFabric::kUnlimited;
    kind.latency = Nanos(0);
    for (const int way : kind.ways) {
      rate = std::min(rate, speeds[way].rate);
      kind.latency += speeds[way].latency;
    }
    const Nanos duration = kind.latency + LeastTime(kind.bytes, rate);
    for (const int task : kind.tasks) durations_[task] = duration;
  }
}

Nanos MapStepBound::LeastOfHost() const {
  if (ServerCount(topology_) > 1) return Nanos(0);  // who is in which server is open
  std::vector<HeadTailJob> jobs;
  for (const int task : host_steps_) {
    jobs.push_back({path_.begin()[task], durations_[task], path_.tail()[task]});
  }
  return LeastEnd(std::move(jobs));
}

Nanos MapStepBound::LeastOfUplink(const std::vector<int>& workers, PrivateWays::Kind direction,
                                  const std::vector<WaySpeed>& speeds) const {
  std::vector<HeadTailJob> jobs;
  for (const int worker : workers) {
    const int way = ways_.OfWorker(worker, direction);
    for (const auto& [task, kind] : copies_[way]) {
      jobs.push_back({path_.begin()[task] + kinds_[kind].latency,
                      LeastTime(kinds_[kind].bytes, speeds[way].rate), path_.tail()[task]});
    }
  }
  return LeastEnd(std::move(jobs));
}

Nanos MapStepBound::LeastStep(absl::Span<const DeviceId> placed) {
  const std::vector<WaySpeed> speeds = ways_.SpeedsOn(placed);
  SetDurations(speeds);
  path_.Run(durations_);
  Nanos least = std::max(path_.length(), LeastOfHost());
  std::vector<std::vector<int>> behind(topology_.switches.size());  // [switch]: workers
  for (int worker = 0; worker < static_cast<int>(placed.size()); ++worker) {
    const std::optional<int> uplink = SwitchOf(topology_, placed[worker]);
    if (uplink) behind[*uplink].push_back(worker);
  }
  for (const std::vector<int>& workers : behind) {
    if (workers.size() < 2) continue;  // its own path says as much
    for (const PrivateWays::Kind direction : {PrivateWays::kToHost, PrivateWays::kFromHost}) {
      least = std::max(least, LeastOfUplink(workers, direction, speeds));
    }
  }
  return least;
}

}  // namespace siphon
