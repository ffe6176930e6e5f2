#include "launch/commands/plan_explain.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/placement_bytes.h"
#include "planner/steps_on_host.h"
#include "planner/weight_stashes.h"

namespace siphon {
namespace {

Nanos CopyTime(Bytes bytes, BytesPerSecond rate, Nanos latency) {
  if (bytes == Bytes(0)) return Nanos(0);
  if (rate == BytesPerSecond(0)) return latency;
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const absl::int128 scaled = absl::int128(bytes.value) * kNanosPerSecond;
  return Nanos(static_cast<int64_t>((scaled + rate.value - 1) / rate.value)) + latency;
}

// Copies of one group alone.
class CopyCosts {
 public:
  CopyCosts(const PlanningProblem& problem, DeviceId device)
      : problem_(problem), topology_(problem.topology), device_(device) {}

  std::optional<Nanos> Host(Bytes bytes) const {
    if (DeviceCount(topology_) == 0) {
      const TransportCosts& transport = problem_.transport;
      return CopyTime(bytes, transport.host_rate, transport.latency) * 2;
    }
    const std::optional<int> index = SwitchOf(topology_, device_);
    if (!index.has_value()) return std::nullopt;
    const PcieSwitch& uplink = topology_.switches[*index];
    return CopyTime(bytes, uplink.to_host, uplink.latency) +
           CopyTime(bytes, uplink.from_host, uplink.latency);
  }

  std::optional<Nanos> Nvme(Bytes bytes) const {
    if (topology_.drives.empty()) return std::nullopt;
    const NvmeDrive& drive = topology_.drives[DriveOf(topology_, device_)];
    return CopyTime(bytes, drive.write, drive.latency) + CopyTime(bytes, drive.read, drive.latency);
  }

  // The stripes at once.
  Nanos Stripes(const std::vector<Stripe>& stripes) const {
    Nanos out;
    Nanos back;
    for (const Stripe& stripe : stripes) {
      const TopologyLink there = LinkBetween(device_, stripe.lender);
      const TopologyLink here = LinkBetween(stripe.lender, device_);
      out = std::max(out, CopyTime(stripe.bytes, there.rate, there.latency));
      back = std::max(back, CopyTime(stripe.bytes, here.rate, here.latency));
    }
    return out + back;
  }

  // Over all its links at once, in proportion to their rates.
  std::optional<Nanos> Peers(Bytes bytes) const {
    BytesPerSecond rate;
    for (const TopologyLink& link : topology_.links) {
      if (link.from == device_) rate += link.rate;
    }
    if (rate == BytesPerSecond(0)) return std::nullopt;
    const BytesPerSecond egress = topology_.devices[device_.value].egress;
    if (egress > BytesPerSecond(0)) rate = std::min(rate, egress);
    return CopyTime(bytes, rate, Nanos(0)) * 2;
  }

 private:
  TopologyLink LinkBetween(DeviceId from, DeviceId to) const {
    return FindLink(topology_, from, to).value_or(TopologyLink());
  }

  const PlanningProblem& problem_;
  const Topology& topology_;
  const DeviceId device_;
};

struct Gap {
  Nanos begin;
  Nanos end;
  Nanos time() const { return end - begin; }
};

// From the end of each forward of the stage to the begin of its backward: in the order of these.
std::vector<Gap> GapsOf(const WorkerTimeline& worker, StageId stage, int microbatches) {
  std::vector<Nanos> ends(static_cast<size_t>(microbatches));
  std::vector<Gap> gaps;
  for (const Interval& interval : worker) {
    const Action& action = interval.action;
    if (action.stage != stage || interval.kind == IntervalKind::kWait) continue;
    const auto microbatch = static_cast<size_t>(action.microbatch.value);
    if (action.kind == ActionKind::kForward) ends[microbatch] = interval.end;
    if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput) {
      gaps.push_back({ends[microbatch], std::max(ends[microbatch], interval.begin)});
    }
  }
  return gaps;
}

// The time between the UPDATE that replaces each stashed version of the stage and its next use.
std::vector<Gap> VersionGapsOf(const WorkerTimeline& worker, const Schedule& schedule,
                               StageId stage) {
  std::map<Action, const Interval*> runs;
  for (const Interval& interval : worker) {
    if (interval.kind != IntervalKind::kWait) runs.try_emplace(interval.action, &interval);
  }
  const WorkerId holder = schedule.worker_of_stage[stage.value];
  const std::vector<Action>& program = schedule.programs[holder.value];
  std::vector<Gap> gaps;
  for (const WeightStash& stash : FindWeightStashes(schedule, holder).stashes) {
    if (stash.stage != stage) continue;
    const auto update = runs.find(program[stash.begin]);
    const auto use = runs.find(program[stash.first_use]);
    if (update == runs.end() || use == runs.end()) continue;  // takes no time
    const Nanos begin = update->second->end;
    gaps.push_back({begin, std::max(begin, use->second->begin)});
  }
  return gaps;
}

// When the stage's optimizer step begins; the step's end where it has none.
Nanos StepBegin(const WorkerTimeline& worker, StageId stage, Nanos step_time) {
  for (const Interval& interval : worker) {
    const bool steps =
        interval.action.kind == ActionKind::kStep || interval.action.kind == ActionKind::kUpdate;
    if (steps && interval.action.stage == stage) return interval.begin;
  }
  return step_time;
}

std::optional<Nanos> CostOf(const ExplainedGroup& group) {
  switch (group.planned.choice.placement) {
    case Placement::kKeep:
      return Nanos(0);
    case Placement::kRecompute:
      return group.each.recompute;
    case Placement::kPeerSwap:
      return group.each.peers;
    case Placement::kHostSwap:
      return group.each.host;
    case Placement::kNvmeSwap:
      return group.each.nvme;
  }
  return std::nullopt;
}

std::string WhyKept(const ExplainedGroup& group, const StudiedPlan& studied, WorkerId worker) {
  const GroupKind kind = group.planned.group.kind;
  if (kind == GroupKind::kParameters || kind == GroupKind::kGradients) {
    return "every microbatch needs them";
  }
  const auto index = static_cast<size_t>(worker.value);
  const Bytes capacity = CapacityOf(studied, index);
  if (capacity == Bytes(0)) return "nothing limits the worker's memory";
  return absl::StrCat("the worker has room for them: with all that it keeps it holds ",
                      FormatBytes(PeakOf(*studied.step, index)), " of ", FormatBytes(capacity));
}

// What each way that was not taken would cost, or why there is none.
std::string OtherWays(const ExplainedGroup& group) {
  const Placement chosen = group.planned.choice.placement;
  std::string text;
  const auto offer = [&](Placement way, const std::optional<Nanos>& cost,
                         absl::string_view not_so) {
    if (way == chosen || (!cost.has_value() && not_so.empty())) return;
    absl::StrAppend(&text, text.empty() ? "; else " : ", ", PlacementName(way), " ",
                    not_so.empty() ? FormatNanos(*cost) : std::string(not_so));
  };
  offer(Placement::kRecompute, group.each.recompute, "");
  offer(Placement::kPeerSwap, group.each.peers, group.each.no_peers);
  offer(Placement::kHostSwap, group.each.host, "");
  offer(Placement::kNvmeSwap, group.each.nvme, "");
  return text;
}

std::string WhyAway(const ExplainedGroup& group) {
  const std::string copies = FormatNanos(CostOf(group).value_or(Nanos(0)));
  switch (group.planned.group.kind) {
    case GroupKind::kParameters:
    case GroupKind::kGradients:
      return absl::StrCat("there only while a pass is at these layers; copies take ", copies,
                          " each time");
    case GroupKind::kOptimizerState:
      return absl::StrCat("needed by the optimizer step only; copies take ", copies,
                          ", with those of all groups of its worker behind each other");
    default:
      break;
  }
  const bool hidden = CostOf(group).value_or(Nanos(0)) <= group.shortest_gap;
  return absl::StrCat("copies take ", copies, hidden ? ", less than the " : ", more than the ",
                      FormatNanos(group.shortest_gap), " without a use");
}

std::string WhyOf(const ExplainedGroup& group, const StudiedPlan& studied, WorkerId worker) {
  switch (group.planned.choice.placement) {
    case Placement::kKeep:
      return WhyKept(group, studied, worker);
    case Placement::kRecompute:
      return absl::StrCat("computing them again takes ",
                          FormatNanos(CostOf(group).value_or(Nanos(0))), " of a microbatch",
                          OtherWays(group));
    default:
      return WhyAway(group) + OtherWays(group);
  }
}

// What each device has left at its fullest; none: there is no limit.
std::vector<std::optional<Bytes>> FreeBytes(const StudiedPlan& studied) {
  const Topology& topology = studied.problem.topology;
  std::vector<std::optional<Bytes>> free;
  for (const TopologyDevice& device : topology.devices) {
    free.push_back(device.memory == Bytes(0) ? std::nullopt : std::optional<Bytes>(device.memory));
  }
  for (const HolderPeak& holder : studied.step->other_peaks) {
    for (size_t device = 0; device < free.size(); ++device) {
      if (holder.name != absl::StrCat("device ", device) || !free[device].has_value()) continue;
      *free[device] -= holder.bytes;
    }
  }
  const std::vector<DeviceId>& devices = studied.plan.mapping.device_of_worker;
  for (size_t worker = 0; worker < studied.step->peak.size(); ++worker) {
    const size_t device = devices.empty() ? worker : static_cast<size_t>(devices[worker].value);
    if (device >= free.size()) continue;
    const Bytes capacity = CapacityOf(studied, worker);
    free[device] = capacity == Bytes(0)
                       ? std::nullopt
                       : std::optional<Bytes>(capacity - PeakOf(*studied.step, worker));
  }
  return free;
}

// Why the bytes cannot be with devices that this one has links to; empty: they can.
std::string NoRoomWithPeers(const StudiedPlan& studied, DeviceId device, Bytes bytes) {
  const std::vector<std::optional<Bytes>> free = FreeBytes(studied);
  Bytes room;
  bool linked = false;
  for (const TopologyLink& link : studied.problem.topology.links) {
    if (link.from != device) continue;
    linked = true;
    const std::optional<Bytes>& there = free[link.to.value];
    if (!there.has_value()) return "";
    room += std::max(Bytes(0), *there);
  }
  if (!linked) return "has no link";
  if (room >= bytes) return "";
  return absl::StrCat("has no room (", FormatBytes(room), " free, all of them away are ",
                      FormatBytes(bytes), ")");
}

class StageExplainer {
 public:
  StageExplainer(const StudiedPlan& studied, StageId stage)
      : studied_(studied),
        stage_(stage),
        worker_(studied.plan.training.worker_of_stage[stage.value]),
        device_(DeviceOf(studied.plan, worker_)),
        costs_(studied.problem, device_) {}

  ExplainedStage Explain(const LiveCopies& live) const {
    ExplainedStage explained{.stage = stage_, .worker = worker_, .device = device_};
    for (const PlannedGroup& planned : studied_.plan.memory.stages[stage_.value].groups) {
      explained.groups.push_back(Group(planned, live));
    }
    return explained;
  }

 private:
  static DeviceId DeviceOf(const PlanText& plan, WorkerId worker) {
    const std::vector<DeviceId>& devices = plan.mapping.device_of_worker;
    return devices.empty() ? DeviceId(worker.value) : devices[worker.value];
  }

  static void SetGaps(const std::vector<Gap>& gaps, ExplainedGroup& group) {
    if (gaps.empty()) return;
    const auto [least, most] = std::minmax_element(
        gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.time() < b.time(); });
    group.shortest_gap = least->time();
    group.longest_gap = most->time();
    group.unused_from = gaps.front().begin;
    group.unused_until = gaps.front().end;
  }

  ExplainedGroup Group(const PlannedGroup& planned, const LiveCopies& live) const {
    ExplainedGroup group{.planned = planned};
    const TensorGroup& tensors = planned.group;
    const WorkerTimeline& timeline = studied_.step->workers[worker_.value];
    group.live = CopiesOf(tensors.kind, live);
    if (tensors.kind == GroupKind::kActivations) {
      group.times = studied_.plan.training.microbatches;
      group.each.recompute = tensors.recompute;
      SetGaps(GapsOf(timeline, stage_, group.times), group);
    } else if (tensors.kind == GroupKind::kWeightVersions) {
      const std::vector<Gap> gaps = VersionGapsOf(timeline, studied_.plan.training, stage_);
      group.times = static_cast<int>(gaps.size());
      SetGaps(gaps, group);
    } else if (tensors.kind == GroupKind::kOptimizerState) {
      group.shortest_gap = StepBegin(timeline, stage_, studied_.step->step_time);
      group.longest_gap = group.shortest_gap;
    }
    const bool lends = planned.choice.placement == Placement::kPeerSwap;
    group.each.peers = lends ? costs_.Stripes(planned.choice.stripes) : costs_.Peers(tensors.bytes);
    if (!lends) {
      const Bytes away = tensors.bytes * CopiesAway(tensors.kind, live);
      group.each.no_peers = NoRoomWithPeers(studied_, device_, away);
    }
    group.each.host = costs_.Host(tensors.bytes);
    group.each.nvme = costs_.Nvme(tensors.bytes);
    const std::vector<StagePlan>& stages = studied_.plan.memory.stages;
    group.steps_on_host = StepsOnHost(stages[stage_.value], planned);
    group.why = group.steps_on_host
                    ? "the host steps these layers: only gradients and parameters are copied"
                    : WhyOf(group, studied_, worker_);
    return group;
  }

  const StudiedPlan& studied_;
  const StageId stage_;
  const WorkerId worker_;
  const DeviceId device_;
  const CopyCosts costs_;
};

}  // namespace

std::vector<ExplainedStage> ExplainPlan(const StudiedPlan& studied) {
  std::vector<ExplainedStage> stages;
  if (!studied.step.has_value()) return stages;
  const std::vector<LiveCopies> live = PeakLiveCopies(studied.plan.training);
  for (size_t stage = 0; stage < studied.plan.memory.stages.size(); ++stage) {
    const StageId id(static_cast<int>(stage));
    stages.push_back(StageExplainer(studied, id).Explain(live[stage]));
  }
  return stages;
}

}  // namespace siphon
