#include "planner/strategies/mpress/mpress_times.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

#include "absl/numeric/int128.h"
#include "planner/layer_cost.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/weight_stashes.h"

namespace siphon {
namespace {

Nanos CopyTime(Bytes bytes, const SwapPath& path) {
  if (path.rate <= BytesPerSecond(0)) return path.latency;
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const absl::int128 scaled = absl::int128(bytes.value) * kNanosPerSecond;
  return path.latency +
         Nanos(static_cast<int64_t>((scaled + path.rate.value - 1) / path.rate.value));
}

// When F has left a (stage, microbatch), and when B has come to it.
struct Life {
  std::optional<Nanos> forward_end;
  std::optional<Nanos> backward_begin;
};

// [stage][microbatch]
std::vector<std::vector<Life>> LivesOf(const Schedule& schedule, const SimulatedStep& step) {
  std::vector<std::vector<Life>> lives(StageCount(schedule));
  for (std::vector<Life>& stage : lives) stage.resize(schedule.microbatches);
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    for (const Interval& interval : step.workers[worker]) {
      if (interval.kind != IntervalKind::kBusy) continue;
      const Action& action = interval.action;
      if (!IsCompute(action.kind)) continue;
      Life& life = lives[action.stage.value][action.microbatch.value];
      if (action.kind == ActionKind::kForward) life.forward_end = interval.end;
      const bool is_backward =
          action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput;
      if (is_backward && !life.backward_begin) life.backward_begin = interval.begin;
    }
  }
  return lives;
}

// What the layers behind `group` take between the two: their F runs after the group's, and their B
// before it.
Nanos BehindGroup(const std::vector<LayerCost>& layers, const StageRange& stage,
                  const TensorGroup& group) {
  Nanos time;
  for (int layer = group.layers.end; layer < stage.end; ++layer) {
    const LayerCost& cost = layers[layer - stage.begin];
    time += cost.forward + WholeBackward(cost);
  }
  return time;
}

// The last action before the stash's UPDATE that has gone by its version; kNone: none has.
int LastUseAsNewest(const std::vector<Action>& program, const WeightStashes& stashes,
                    const WeightStash& stash) {
  for (int place = stash.begin - 1; place > stash.born; --place) {
    const Action& action = program[place];
    const bool uses = action.stage == stash.stage && IsCompute(action.kind) &&
                      stashes.At(place) == WeightStashes::kNone;
    if (uses) return place;
  }
  return WeightStashes::kNone;
}

// From the end of what goes by weights while they are the newest, or of the UPDATE that replaces
// them, until the begin of what goes by them next.
struct StashGap {
  ActionKind last = ActionKind::kUpdate;
  Nanos time;
};

// [stage], one of each stash.
std::vector<std::vector<StashGap>> StashGaps(const Schedule& schedule, const SimulatedStep& step) {
  std::vector<std::vector<StashGap>> gaps(schedule.worker_of_stage.size());
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    const WeightStashes stashes = FindWeightStashes(schedule, WorkerId(worker));
    if (stashes.stashes.empty()) continue;
    std::map<Action, Nanos> begins;
    std::map<Action, Nanos> ends;
    for (const Interval& interval : step.workers[worker]) {
      if (interval.kind != IntervalKind::kBusy) continue;
      begins.try_emplace(interval.action, interval.begin);
      ends[interval.action] = interval.end;
    }
    const std::vector<Action>& program = schedule.programs[worker];
    for (const WeightStash& stash : stashes.stashes) {
      const int newest = LastUseAsNewest(program, stashes, stash);
      const Action& last = program[newest == WeightStashes::kNone ? stash.begin : newest];
      const auto from = ends.find(last);
      const auto to = begins.find(program[stash.first_use]);
      if (from == ends.end() || to == begins.end()) continue;  // takes no time
      gaps[stash.stage.value].push_back({last.kind, to->second - from->second});
    }
  }
  return gaps;
}

// The shortest of the gaps at the group's layers; the whole step without any. What comes next is a
// backward, which comes to the last layers first; if the last was one, too, it has left these long
// before its end.
Nanos ShortestGap(const std::vector<StashGap>& gaps, const std::vector<LayerCost>& layers,
                  const StageRange& stage, const TensorGroup& group, Nanos whole_step) {
  Nanos backward_before;
  Nanos forward_behind;
  Nanos backward_behind;
  for (int layer = stage.begin; layer < group.layers.begin; ++layer) {
    backward_before += WholeBackward(layers[layer - stage.begin]);
  }
  for (int layer = group.layers.end; layer < stage.end; ++layer) {
    forward_behind += layers[layer - stage.begin].forward;
    backward_behind += WholeBackward(layers[layer - stage.begin]);
  }
  Nanos shortest = whole_step;
  for (const StashGap& gap : gaps) {
    const Nanos before = gap.last == ActionKind::kUpdate    ? Nanos(0)
                         : gap.last == ActionKind::kForward ? forward_behind
                                                            : backward_before;
    shortest = std::min(shortest, before + gap.time + backward_behind);
  }
  return shortest;
}

}  // namespace

Nanos RoundTrip(Bytes bytes, const SwapPath& out, const SwapPath& in) {
  return CopyTime(bytes, out) + CopyTime(bytes, in);
}

std::optional<HostPaths> HostPathsOf(const PlanningProblem& problem, DeviceId device) {
  const Topology& topology = problem.topology;
  if (topology.devices.empty()) {
    const SwapPath path{problem.transport.host_rate, problem.transport.latency};
    return HostPaths{path, path};
  }
  const std::optional<int> index = SwitchOf(topology, device);
  if (!index) return std::nullopt;
  const PcieSwitch& uplink = topology.switches[*index];
  return HostPaths{{uplink.to_host, uplink.latency}, {uplink.from_host, uplink.latency}};
}

Nanos UplinkTime(const PlanningProblem& problem, DeviceId device, Bytes bytes) {
  std::optional<HostPaths> host = HostPathsOf(problem, device);
  if (!host) return Nanos(0);
  if (const std::optional<int> index = SwitchOf(problem.topology, device)) {
    const PcieSwitch& uplink = problem.topology.switches[*index];
    if (uplink.to_host_both > BytesPerSecond(0)) host->out.rate = uplink.to_host_both;
    if (uplink.from_host_both > BytesPerSecond(0)) host->in.rate = uplink.from_host_both;
  }
  return std::max(CopyTime(bytes, host->out), CopyTime(bytes, host->in));
}

std::vector<PeerPath> PeerPathsOf(const PlanningProblem& problem, DeviceId device) {
  std::vector<PeerPath> peers;
  const Topology& topology = problem.topology;
  const int64_t host_rate_left = HostRateLeft(topology, device);
  for (int other = 0; other < DeviceCount(topology); ++other) {
    const std::optional<TopologyLink> out = FindLink(topology, device, DeviceId(other));
    const std::optional<TopologyLink> in = FindLink(topology, DeviceId(other), device);
    if (!out || !in || LendingRate(*out, *in, host_rate_left) == 0) continue;
    peers.push_back({DeviceId(other), {out->rate, out->latency}, {in->rate, in->latency}});
  }
  return peers;
}

std::vector<std::vector<Nanos>> LiveIntervals(const PlanningProblem& problem,
                                              const MemoryPlan& plan, const SimulatedStep& step) {
  const std::vector<std::vector<Life>> lives = LivesOf(problem.schedule, step);
  const std::vector<std::vector<LayerCost>> layers = LayerCosts(problem.profile, problem.partition);
  const std::vector<std::vector<StashGap>> gaps = StashGaps(problem.schedule, step);
  std::vector<std::vector<Nanos>> intervals;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    Nanos shortest(std::numeric_limits<int64_t>::max());
    for (const Life& life : lives[stage]) {
      if (!life.forward_end || !life.backward_begin) continue;
      shortest = std::min(shortest, *life.backward_begin - *life.forward_end);
    }
    std::vector<Nanos>& of_stage = intervals.emplace_back();
    for (const auto& [group, choice] : plan.stages[stage].groups) {
      const StageRange& range = problem.partition.stages[stage];
      const bool lives_by_microbatch =
          group.kind == GroupKind::kActivations && shortest <= step.step_time;
      Nanos& interval = of_stage.emplace_back(step.step_time);
      if (lives_by_microbatch) interval = shortest + BehindGroup(layers[stage], range, group);
      if (group.kind == GroupKind::kWeightVersions) {
        interval = ShortestGap(gaps[stage], layers[stage], range, group, step.step_time);
      }
    }
  }
  return intervals;
}

}  // namespace siphon
