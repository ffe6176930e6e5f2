#include "launch/commands/plan_explain.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "launch/commands/plan_copy_costs.h"
#include "launch/commands/plan_reasons.h"
#include "planner/placement_bytes.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/steps_on_host.h"
#include "planner/weight_stashes.h"

namespace siphon {
namespace {

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

class StageExplainer {
 public:
  StageExplainer(const StudiedPlan& studied, StageId stage)
      : studied_(studied),
        stage_(stage),
        worker_(studied.plan.training.worker_of_stage[stage.value]),
        device_(DeviceOf(studied.plan, worker_)),
        costs_(studied.problem, device_) {}

  // `goes` [group] is of CopiesThatGo.
  ExplainedStage Explain(const LiveCopies& live, const std::vector<int>& goes) const {
    ExplainedStage explained{.stage = stage_, .worker = worker_, .device = device_};
    const std::vector<PlannedGroup>& groups = studied_.plan.memory.stages[stage_.value].groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      explained.groups.push_back(Group(groups[group], live, goes[group]));
      const bool activations = groups[group].group.kind == GroupKind::kActivations;
      if (activations) SetStreams(GroupId(static_cast<int>(group)), explained.groups.back());
      explained.groups.back().why = ReasonOf(explained.groups.back(), studied_, worker_);
    }
    return explained;
  }

 private:
  static DeviceId DeviceOf(const PlanText& plan, WorkerId worker) {
    const std::vector<DeviceId>& devices = plan.mapping.device_of_worker;
    return devices.empty() ? DeviceId(worker.value) : devices[worker.value];
  }

  static std::optional<Nanos> Shortest(const std::vector<Gap>& gaps) {
    std::optional<Nanos> shortest;
    for (const Gap& gap : gaps) shortest = std::min(shortest.value_or(gap.time()), gap.time());
    return shortest;
  }

  // By the worker's program, whether any microbatch's do.
  void SetStreams(GroupId id, ExplainedGroup& group) const {
    const Schedule& schedule = studied_.plan.training;
    std::set<MicrobatchId> made, away;
    for (const Action& action : schedule.programs[worker_.value]) {
      if (action.stage != stage_) continue;
      if (action.kind == ActionKind::kForward) made.insert(action.microbatch);
      const bool backward = action.kind == ActionKind::kBackward ||  //
                            action.kind == ActionKind::kBackwardInput;
      group.comes_under_backward |= backward && away.contains(action.microbatch);
      if (action.group != id) continue;
      if (action.kind == ActionKind::kSwapOutEnd) {
        away.insert(action.microbatch);
        group.leaves_under_forward |= !made.contains(action.microbatch);
      } else if (action.kind == ActionKind::kSwapIn) {
        away.erase(action.microbatch);
      }
    }
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

  ExplainedGroup Group(const PlannedGroup& planned, const LiveCopies& live, int goes) const {
    ExplainedGroup group{.planned = planned};
    const TensorGroup& tensors = planned.group;
    const WorkerTimeline& timeline = studied_.step->workers[worker_.value];
    const WorkerTimeline& kept_step = studied_.kept.workers[worker_.value];
    group.live = CopiesOf(tensors.kind, live);
    const bool kept = planned.choice.placement == Placement::kKeep;
    group.goes = kept ? group.live : std::min(group.live, goes);
    if (tensors.kind == GroupKind::kActivations) {
      group.times = studied_.plan.training.microbatches;
      group.each.recompute = tensors.recompute;
      SetGaps(GapsOf(timeline, stage_, group.times), group);
      group.kept_gap = Shortest(GapsOf(kept_step, stage_, group.times));
    } else if (tensors.kind == GroupKind::kWeightVersions) {
      const std::vector<Gap> gaps = VersionGapsOf(timeline, studied_.plan.training, stage_);
      group.times = static_cast<int>(gaps.size());
      SetGaps(gaps, group);
      group.kept_gap = Shortest(VersionGapsOf(kept_step, studied_.plan.training, stage_));
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
    group.stream_buffers = stages[stage_.value].stream_buffers;
    group.stays_for_host_step = StaysForHostStep(stages[stage_.value], planned);
    return group;
  }

  const StudiedPlan& studied_;
  const StageId stage_;
  const WorkerId worker_;
  const DeviceId device_;
  const CopyCosts costs_;
};

}  // namespace

std::optional<Nanos> ExposedOf(const ExplainedGroup& group, std::optional<Nanos> copies) {
  if (!group.kept_gap.has_value() || !copies.has_value()) return std::nullopt;
  return std::max(Nanos(0), *copies - *group.kept_gap);
}

std::vector<ExplainedStage> ExplainPlan(const StudiedPlan& studied) {
  std::vector<ExplainedStage> stages;
  if (!studied.step.has_value()) return stages;
  const std::vector<LiveCopies> live = PeakLiveCopies(studied.plan.training);
  const std::vector<std::vector<int>> goes =
      CopiesThatGo(studied.plan.training, studied.plan.memory);
  for (size_t stage = 0; stage < studied.plan.memory.stages.size(); ++stage) {
    const StageId id(static_cast<int>(stage));
    stages.push_back(StageExplainer(studied, id).Explain(live[stage], goes[stage]));
  }
  return stages;
}

}  // namespace siphon
