#include "planner/simulator/step_timelines.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "planner/simulator/engine/slowed_copies.h"

namespace siphon {
namespace {

class TimelineBuilder {
 public:
  TimelineBuilder(const Schedule& schedule, const StepGraph& step, const TaskRun& run,
                  LaneDetail detail)
      : schedule_(schedule),
        step_(step),
        run_(run),
        has_lanes_(detail == LaneDetail::kWithLanes),
        free_from_(step.workers) {
    result_.step_time = run.end_time;
    result_.workers.resize(step.workers);
    result_.exposed_waits.resize(step.workers);
    result_.lanes.resize(has_lanes_ ? step.lane_names.size() : 0);
  }

  SimulatedStep Build() {
    // Tasks of one lane stand in the order in which they ran; those of queues are sorted later.
    for (size_t task = 0; task < step_.origins.size(); ++task) {
      switch (step_.origins[task].role) {
        case TaskRole::kCompute:
        case TaskRole::kMarker:
          AddWait(static_cast<int>(task));
          AddWork(static_cast<int>(task));
          break;
        case TaskRole::kMessage:
        case TaskRole::kSwap:
        case TaskRole::kExchange:
        case TaskRole::kHostStep:
          if (has_lanes_) AddCopy(static_cast<int>(task));
          break;
      }
    }
    if (has_lanes_) AddSlowedTimes();
    if (has_lanes_) AddCapacities();
    MeasureIdleTime();
    return std::move(result_);
  }

 private:
  Action ActionOf(const TaskOrigin& origin) const {
    Action action = schedule_.programs[origin.worker % WorkerCount(schedule_)][origin.place];
    if (origin.recomputes != kWholeStage) {
      action.kind = ActionKind::kRecompute;
      action.pairing = Pairing::kAlone;
      action.group = origin.recomputes;
    }
    return action;
  }

  void Wait(const TaskOrigin& origin, WaitCause cause, Nanos begin, Nanos end) {
    result_.exposed_waits[origin.worker][static_cast<size_t>(cause)] += end - begin;
  }

  void AddWait(int task) {
    const TaskOrigin& origin = step_.origins[task];
    const Nanos begin = free_from_[origin.worker];
    const Nanos end = run_.begin[task];
    if (begin == end || origin.provider < 0) return;
    const TaskOrigin& provider = step_.origins[origin.provider];
    if (provider.role == TaskRole::kMessage) {
      const Nanos made = std::clamp(run_.end[provider.provider], begin, end);
      Wait(origin, WaitCause::kPredecessor, begin, made);
      Wait(origin, WaitCause::kTransfer, made, end);
    } else {
      const WaitCause cause = provider.role == TaskRole::kSwap       ? WaitCause::kSwap
                              : provider.role == TaskRole::kExchange ? WaitCause::kStepEnd
                                                                     : WaitCause::kPredecessor;
      Wait(origin, cause, begin, end);
    }
    result_.workers[origin.worker].push_back(
        {.action = ActionOf(origin), .kind = IntervalKind::kWait, .begin = begin, .end = end});
  }

  // The parts of one action make one interval.
  void AddWork(int task) {
    const TaskOrigin& origin = step_.origins[task];
    free_from_[origin.worker] = run_.end[task];
    if (run_.begin[task] == run_.end[task]) return;
    WorkerTimeline& timeline = result_.workers[origin.worker];
    const Action action = ActionOf(origin);
    if (!timeline.empty() && timeline.back().kind == IntervalKind::kBusy &&
        timeline.back().action == action && timeline.back().end == run_.begin[task]) {
      timeline.back().end = run_.end[task];
      return;
    }
    timeline.push_back({.action = action,
                        .kind = IntervalKind::kBusy,
                        .begin = run_.begin[task],
                        .end = run_.end[task]});
  }

  void AddCopy(int task) {
    const Task& copy = step_.graph.tasks()[task];
    if (!copy.lane.has_value()) return;
    LaneTimeline& lane = result_.lanes[copy.lane->value];
    lane.bytes += copy.bytes;
    if (run_.begin[task] == run_.end[task]) return;
    lane.busy += run_.end[task] - run_.begin[task];
    lane.intervals.push_back({.action = ActionOf(step_.origins[task]),
                              .kind = IntervalKind::kBusy,
                              .begin = run_.begin[task],
                              .end = run_.end[task]});
  }

  void AddSlowedTimes() {
    const TaskGraph& graph = step_.graph;
    for (const SlowedCopy& copy : FindSlowedCopies(run_)) {
      const std::optional<LaneId>& lane = graph.tasks()[copy.copy.value].lane;
      if (!lane.has_value()) continue;
      std::vector<SlowedTime>& slowed = result_.lanes[lane->value].slowed;
      const std::string& by = graph.capacities()[copy.by.value].name;
      if (!slowed.empty() && slowed.back().end == copy.begin && slowed.back().by == by) {
        slowed.back().end = copy.end;
      } else {
        slowed.push_back({.by = by, .begin = copy.begin, .end = copy.end});
      }
    }
  }

  void AddCapacities() {
    for (size_t lane = 0; lane < result_.lanes.size(); ++lane) {
      result_.lanes[lane].name = step_.lane_names[lane];
      if (!step_.graph.IsQueue(LaneId(static_cast<int>(lane)))) continue;
      WorkerTimeline& queue = result_.lanes[lane].intervals;
      std::stable_sort(queue.begin(), queue.end(),
                       [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    }
    for (size_t index = 0; index < run_.uses.size(); ++index) {
      result_.lanes.push_back({.name = step_.graph.capacities()[index].name,
                               .bytes = run_.uses[index].bytes,
                               .busy = run_.uses[index].busy});
    }
    std::erase_if(result_.lanes, [](const LaneTimeline& lane) {
      return lane.bytes == Bytes(0) && lane.intervals.empty();
    });
  }

  void MeasureIdleTime() {
    Nanos busy;
    Nanos inner_idle;
    for (const WorkerTimeline& timeline : result_.workers) {
      Nanos own;
      Nanos first = result_.step_time;
      Nanos last;
      for (const Interval& interval : timeline) {
        if (interval.kind == IntervalKind::kWait) continue;
        own += interval.end - interval.begin;
        first = std::min(first, interval.begin);
        last = std::max(last, interval.end);
      }
      busy += own;
      if (last > first) inner_idle += last - first - own;
    }
    const Nanos all = result_.step_time * static_cast<int64_t>(result_.workers.size());
    if (all == Nanos(0)) return;
    result_.bubble_fraction =
        static_cast<double>((all - busy).value) / static_cast<double>(all.value);
    result_.inner_idle_fraction =
        static_cast<double>(inner_idle.value) / static_cast<double>(all.value);
  }

  const Schedule& schedule_;
  const StepGraph& step_;
  const TaskRun& run_;
  const bool has_lanes_;
  std::vector<Nanos> free_from_;  // [worker]
  SimulatedStep result_;
};

}  // namespace

SimulatedStep StepTimelines(const Schedule& schedule, const StepGraph& step, const TaskRun& run,
                            LaneDetail detail) {
  return TimelineBuilder(schedule, step, run, detail).Build();
}

}  // namespace siphon
