#include "planner/performance/simulate_out_of_core.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/simulator/engine/run_task_graph.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::string_view KindName(OutOfCoreKind kind) {
  constexpr std::array<absl::string_view, 6> kNames = {"F", "B", "out ", "in ", "evict ", "fault "};
  return kNames[static_cast<size_t>(kind)];
}

absl::string_view LaneName(OutOfCoreLane lane) {
  constexpr std::array<absl::string_view, kOutOfCoreLanes> kNames = {"compute", "out", "in"};
  return kNames[static_cast<size_t>(lane)];
}

std::vector<OutOfCoreInterval> RunTasks(const std::vector<OutOfCoreTask>& tasks) {
  TaskGraph graph;
  std::array<LaneId, kOutOfCoreLanes> lanes;
  for (LaneId& lane : lanes) lane = graph.AddLane();
  std::vector<TaskId> ids;
  ids.reserve(tasks.size());
  for (const OutOfCoreTask& task : tasks) {
    ids.push_back(graph.AddTask(lanes[static_cast<size_t>(LaneOf(task.kind))], task.duration));
    for (const int earlier : task.after) {
      SIPHON_CHECK(0 <= earlier && earlier + 1 < static_cast<int>(ids.size()),
                   "a task waits for earlier ones only");
      graph.AddDependency(ids.back(), ids[earlier]);
    }
  }
  const TaskRun run = RunTaskGraph(graph);
  SIPHON_CHECK(run.stuck.empty(), "tasks listed in an order in which they can run do run");
  std::vector<OutOfCoreInterval> intervals;
  intervals.reserve(tasks.size());
  for (size_t index = 0; index < tasks.size(); ++index) {
    intervals.push_back({tasks[index].kind, tasks[index].layer, run.begin[index], run.end[index]});
  }
  return intervals;
}

// Memory that is given back at a moment is there for who takes it at that moment.
Bytes PeakBytes(const std::vector<OutOfCoreTask>& tasks,
                const std::vector<OutOfCoreInterval>& intervals) {
  std::vector<std::pair<Nanos, Bytes>> changes;  // releases are negative, so they sort first
  for (size_t index = 0; index < tasks.size(); ++index) {
    const OutOfCoreTask& task = tasks[index];
    if (task.acquires.value > 0) changes.emplace_back(intervals[index].begin, task.acquires);
    if (task.releases.value > 0) {
      changes.emplace_back(intervals[index].end, Bytes(0) - task.releases);
    }
  }
  std::sort(changes.begin(), changes.end());
  Bytes held;
  Bytes peak;
  for (const auto& [time, bytes] : changes) {
    held += bytes;
    peak = std::max(peak, held);
  }
  SIPHON_CHECK(held.value == 0, "a step gives back all near memory that it took");
  return peak;
}

// When a backward first waited, for a copy or a page.
std::optional<Nanos> CatchUp(const std::vector<OutOfCoreTask>& tasks,
                             const std::vector<OutOfCoreInterval>& intervals, Nanos forward_end) {
  Nanos computed = forward_end;
  for (size_t index = 0; index < tasks.size(); ++index) {
    if (tasks[index].kind != OutOfCoreKind::kBackward) continue;
    if (intervals[index].begin > computed) return computed - forward_end;
    computed = intervals[index].end;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<OutOfCoreStep> SimulateOutOfCore(const OutOfCoreStrategy& strategy,
                                                const OutOfCoreProblem& problem) {
  SIPHON_ASSIGN_OR_RETURN(const OutOfCoreTasks listed, strategy.tasks(problem));
  OutOfCoreStep step;
  step.intervals = RunTasks(listed.tasks);
  step.swapped_layers = listed.swapped_layers;
  step.peak = PeakBytes(listed.tasks, step.intervals);
  for (size_t index = 0; index < listed.tasks.size(); ++index) {
    const OutOfCoreTask& task = listed.tasks[index];
    const Nanos end = step.intervals[index].end;
    step.step_time = std::max(step.step_time, end);
    if (task.kind == OutOfCoreKind::kForward) step.forward = end;
    const bool inwards = task.kind == OutOfCoreKind::kCopyIn || task.kind == OutOfCoreKind::kFault;
    (inwards ? step.moved_in : step.moved_out) += task.moved;
  }
  const Nanos compute = ComputeTime(problem);
  step.stall = step.step_time - compute;
  if (step.step_time.value > 0) {
    step.utilization =
        static_cast<double>(compute.value) / static_cast<double>(step.step_time.value);
  }
  step.catch_up = CatchUp(listed.tasks, step.intervals, step.forward);
  return step;
}

std::string ToString(const OutOfCoreStep& step) {
  std::vector<OutOfCoreInterval> intervals = step.intervals;
  std::stable_sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, LaneOf(a.kind)) < std::pair(b.begin, LaneOf(b.kind));
  });
  std::string text;
  for (const OutOfCoreInterval& interval : intervals) {
    absl::StrAppend(&text, KindName(interval.kind), interval.layer + 1, " [", interval.begin.value,
                    ", ", interval.end.value, ") ", LaneName(LaneOf(interval.kind)), "\n");
  }
  return text;
}

}  // namespace siphon
