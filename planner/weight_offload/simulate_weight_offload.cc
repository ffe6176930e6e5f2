#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "planner/weight_offload/weight_offload_plan.h"

namespace siphon {
namespace {

// At one moment: what ends, then what is deleted, then what begins.
enum class Change { kEnd, kDelete, kBegin };

struct Event {
  Nanos time;
  Change change = Change::kEnd;
  int index = 0;  // of a task, or of a deletion
  friend auto operator<=>(const Event&, const Event&) = default;
};

Nanos TimeOf(const WeightOffloadProblem& problem, const WeightTask& task) {
  switch (task.kind) {
    case WeightTaskKind::kForward:
      return problem.layers[task.layer].forward;
    case WeightTaskKind::kBackward:
      return problem.layers[task.layer].backward;
    case WeightTaskKind::kSend:
      return SendTime(problem, task.layer);
    case WeightTaskKind::kFetch:
      return FetchTime(problem, task.layer);
  }
  return {};
}

size_t LaneOf(WeightTaskKind kind) {
  if (kind == WeightTaskKind::kSend) return 1;
  return kind == WeightTaskKind::kFetch ? 2 : 0;
}

bool IsOperation(const WeightTask& task) {
  return task.kind == WeightTaskKind::kForward || task.kind == WeightTaskKind::kBackward;
}

Nanos LastEnd(const std::vector<WeightTaskInterval>& intervals, const std::vector<int>& after) {
  Nanos last;
  for (const int task : after) last = std::max(last, intervals[task].end);
  return last;
}

std::vector<WeightTaskInterval> RunLanes(const WeightOffloadProblem& problem,
                                         const WeightOffloadPlan& plan) {
  std::array<Nanos, 3> lane_end;
  std::vector<WeightTaskInterval> intervals;
  intervals.reserve(plan.tasks.size());
  for (const WeightTask& task : plan.tasks) {
    Nanos& lane = lane_end[LaneOf(task.kind)];
    const Nanos begin = std::max(lane, LastEnd(intervals, task.after));
    lane = begin + TimeOf(problem, task);
    intervals.push_back({begin, lane});
  }
  return intervals;
}

// Follows weights and memory from one event to the next.
class Watch {
 public:
  Watch(const WeightOffloadProblem& problem, const WeightOffloadPlan& plan)
      : problem_(problem), plan_(plan), memories_(OperationMemories(problem)) {
    for (size_t layer = 0; layer < problem.layers.size(); ++layer) {
      const bool present = plan.present[layer];
      weights_.push_back({present ? Place::kPresent : Place::kAbsent});
      if (present) held_ += problem.layers[layer].weight;
    }
    operation_bytes_ = memories_.back().after;
  }

  absl::Status Take(const Event& event) {
    const int layer = event.change == Change::kDelete ? plan_.deletions[event.index].layer
                                                      : plan_.tasks[event.index].layer;
    Weight& weight = weights_[layer];
    const std::string problem = event.change == Change::kDelete  ? Delete(layer, weight)
                                : event.change == Change::kBegin ? Begin(event.index, weight)
                                                                 : End(event.index, weight);
    if (problem.empty()) return absl::OkStatus();
    const std::string name = event.change == Change::kDelete ? absl::StrCat("delete ", layer + 1)
                                                             : TaskName(plan_.tasks[event.index]);
    return absl::FailedPreconditionError(
        absl::StrCat(name, " at ", event.time.value, " ns: ", problem));
  }

  // The weights are where a step found them.
  absl::Status CheckSameAsAtStart() const {
    for (size_t layer = 0; layer < weights_.size(); ++layer) {
      if ((weights_[layer].place == Place::kPresent) == plan_.present[layer]) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "the weight of layer ", layer + 1, " is ",
          plan_.present[layer] ? "on the device when a step begins, but not when it ends"
                               : "on the device when a step ends, but not when it "
                                 "begins"));
    }
    return absl::OkStatus();
  }

  Bytes peak() const { return peak_; }

 private:
  enum class Place { kAbsent, kArriving, kPresent };
  struct Weight {
    Place place = Place::kAbsent;
    bool on_host = true;  // in its latest version; at the very beginning all weights are
    bool in_operation = false;
    bool in_send = false;
  };

  std::string Begin(int index, Weight& weight) {
    const WeightTask& task = plan_.tasks[index];
    if (task.kind == WeightTaskKind::kFetch) {
      if (weight.place != Place::kAbsent) return "the weight is on the device already";
      if (!weight.on_host) return "the host does not have the latest version";
      weight.place = Place::kArriving;
      held_ += problem_.layers[task.layer].weight;
      return CheckMemory();
    }
    if (weight.place != Place::kPresent) return "the weight is not on the device";
    if (task.kind == WeightTaskKind::kSend) {
      if (weight.in_operation && changing_) return "its backward is changing the weight";
      weight.in_send = true;
      return "";
    }
    if (weight.in_send && task.kind == WeightTaskKind::kBackward) {
      return "the weight is being sent while its backward would change it";
    }
    weight.in_operation = true;
    changing_ = task.kind == WeightTaskKind::kBackward;
    operation_bytes_ = memories_[OperationOf(task)].during;
    return CheckMemory();
  }

  std::string End(int index, Weight& weight) {
    const WeightTask& task = plan_.tasks[index];
    switch (task.kind) {
      case WeightTaskKind::kFetch:
        weight.place = Place::kPresent;
        return "";
      case WeightTaskKind::kSend:
        weight.in_send = false;
        weight.on_host = true;
        return "";
      case WeightTaskKind::kBackward:
        weight.on_host = false;
        break;
      case WeightTaskKind::kForward:
        break;
    }
    weight.in_operation = false;
    operation_bytes_ = memories_[OperationOf(task)].after;
    return "";
  }

  std::string Delete(int layer, Weight& weight) {
    if (weight.place != Place::kPresent) return "the weight is not on the device";
    if (weight.in_operation || weight.in_send) return "the weight is in use";
    if (!weight.on_host) return "the host does not have the latest version";
    weight.place = Place::kAbsent;
    held_ -= problem_.layers[layer].weight;
    return "";
  }

  std::string CheckMemory() {
    const Bytes now = held_ + operation_bytes_;
    peak_ = std::max(peak_, now);
    if (now <= problem_.capacity) return "";
    return absl::StrCat("memory would hold ", now.value, " B, the device has ",
                        problem_.capacity.value, " B");
  }

  int OperationOf(const WeightTask& task) const {
    const int layers = static_cast<int>(problem_.layers.size());
    return task.kind == WeightTaskKind::kForward ? layers + task.layer : layers - 1 - task.layer;
  }

  const WeightOffloadProblem& problem_;
  const WeightOffloadPlan& plan_;
  const std::vector<OperationMemory> memories_;
  std::vector<Weight> weights_;  // [layer]
  Bytes held_;                   // by weights
  Bytes operation_bytes_;        // by the operation that runs, or that ran last
  bool changing_ = false;        // the operation that runs is a backward
  Bytes peak_;
};

// Operations are those of a step, in its order, and tasks and deletions wait for what exists.
absl::Status CheckShape(const WeightOffloadProblem& problem, const WeightOffloadPlan& plan) {
  const int layers = static_cast<int>(problem.layers.size());
  SIPHON_CHECK(static_cast<int>(plan.present.size()) == layers, "a plan places every weight");
  int operation = 0;
  for (size_t index = 0; index < plan.tasks.size(); ++index) {
    const WeightTask& task = plan.tasks[index];
    SIPHON_CHECK(0 <= task.layer && task.layer < layers, "a task is of a layer");
    for (const int earlier : task.after) {
      SIPHON_CHECK(0 <= earlier && earlier < static_cast<int>(index),
                   "a task waits for earlier ones");
    }
    if (!IsOperation(task)) {
      if (problem.layers[task.layer].weight.value > 0) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(TaskName(task), ": the layer has no weight to move"));
    }
    const std::string expected =
        operation < OperationCount(problem) ? OperationName(problem, operation) : "the end";
    if (TaskName(task) != expected) {
      return absl::FailedPreconditionError(absl::StrCat("operation ", operation + 1,
                                                        " of the step is ", TaskName(task),
                                                        " where ", expected, " belongs"));
    }
    ++operation;
  }
  if (operation < OperationCount(problem)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the step has no ", OperationName(problem, operation)));
  }
  for (const WeightDeletion& deletion : plan.deletions) {
    SIPHON_CHECK(!deletion.after.empty(), "a deletion is after a task");
  }
  return absl::OkStatus();
}

std::vector<Event> EventsOf(const WeightOffloadPlan& plan,
                            const std::vector<WeightTaskInterval>& intervals) {
  std::vector<Event> events;
  for (size_t index = 0; index < intervals.size(); ++index) {
    events.push_back({intervals[index].begin, Change::kBegin, static_cast<int>(index)});
    events.push_back({intervals[index].end, Change::kEnd, static_cast<int>(index)});
  }
  for (size_t index = 0; index < plan.deletions.size(); ++index) {
    events.push_back({LastEnd(intervals, plan.deletions[index].after), Change::kDelete,
                      static_cast<int>(index)});
  }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

absl::StatusOr<WeightOffloadStep> SimulateWeightOffload(const WeightOffloadProblem& problem,
                                                        const WeightOffloadPlan& plan) {
  SIPHON_RETURN_IF_ERROR(CheckWeightOffloadProblem(problem));
  SIPHON_RETURN_IF_ERROR(CheckShape(problem, plan));
  WeightOffloadStep step;
  step.intervals = RunLanes(problem, plan);
  const std::vector<Event> events = EventsOf(plan, step.intervals);
  Watch watch(problem, plan);
  for (int round = 1; round <= 2; ++round) {
    const std::string where = absl::StrCat("step ", round);
    for (const Event& event : events) {
      SIPHON_RETURN_IF_ERROR(Annotate(watch.Take(event), where));
    }
    SIPHON_RETURN_IF_ERROR(Annotate(watch.CheckSameAsAtStart(), where));
  }
  step.peak = watch.peak();
  for (size_t index = 0; index < plan.tasks.size(); ++index) {
    const WeightTask& task = plan.tasks[index];
    step.step_time = std::max(step.step_time, step.intervals[index].end);
    if (task.kind == WeightTaskKind::kSend) step.sent += problem.layers[task.layer].weight;
    if (task.kind == WeightTaskKind::kFetch) step.fetched += problem.layers[task.layer].weight;
  }
  step.idle = step.step_time - ComputeTime(problem);
  return step;
}

std::string TaskName(const WeightTask& task) {
  constexpr std::array<absl::string_view, 4> kNames = {"F", "B", "send ", "fetch "};
  return absl::StrCat(kNames[static_cast<size_t>(task.kind)], task.layer + 1);
}

std::string ToString(const WeightOffloadPlan& plan, const WeightOffloadStep& step) {
  std::string text;
  for (const Event& event : EventsOf(plan, step.intervals)) {
    if (event.change == Change::kDelete) {
      absl::StrAppend(&text, "delete ", plan.deletions[event.index].layer + 1, " at ",
                      event.time.value, "\n");
    } else if (event.change == Change::kBegin) {
      absl::StrAppend(&text, TaskName(plan.tasks[event.index]), " [", event.time.value, ", ",
                      step.intervals[event.index].end.value, ")\n");
    }
  }
  return text;
}

}  // namespace siphon
