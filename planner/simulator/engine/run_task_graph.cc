#include "planner/simulator/engine/run_task_graph.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace siphon {
namespace {

// Of a run, at most.
constexpr size_t kMarks = 32;

void FindFollowers(const TaskGraph& graph, TaskRunSpace& space) {
  std::vector<int>& first = space.first_follower;
  first.assign(graph.tasks().size() + 2, 0);
  for (const auto& [task, before] : graph.dependencies()) ++first[before.value + 2];
  for (size_t index = 2; index < first.size(); ++index) first[index] += first[index - 1];
  space.followers.resize(graph.dependencies().size());
  for (const auto& [task, before] : graph.dependencies()) {
    space.followers[first[before.value + 1]++] = task.value;
  }
}

class Runner {
 public:
  Runner(const TaskGraph& graph, TaskRunSpace& space, RunMarks marks)
      : graph_(graph),
        shares_(graph),
        cores_(graph.cores()),
        first_follower_(space.first_follower),
        followers_(space.followers),
        waiting_for_(space.waiting_for),
        next_in_lane_(space.next_in_lane),
        queues_(static_cast<size_t>(graph.lanes())),
        marks_(space.marks),
        events_between_marks_(marks == RunMarks::kKept ? 2 * graph.tasks().size() / kMarks + 1 : 0),
        repeated_(space.repeated),
        run_(space.run) {
    FindFollowers(graph, space);
    waiting_for_.assign(graph.tasks().size(), 0);
    next_in_lane_.assign(graph.tasks().size(), -1);
    marks_.clear();
    repeated_ = 0;
    run_.events.clear();
    run_.limits.clear();
    run_.stuck.clear();
    run_.begin.assign(graph.tasks().size(), Nanos(-1));
    run_.end.assign(graph.tasks().size(), Nanos(-1));
    run_.events.reserve(2 * graph.tasks().size());
    for (int lane = 0; lane < graph.lanes(); ++lane) has_queues_ |= graph.IsQueue(LaneId(lane));
  }

  void Run() {
    CountWaits();
    for (size_t task = 0; task < waiting_for_.size(); ++task) {
      if (waiting_for_[task] == 0) Ready(static_cast<int>(task));
    }
    BeginReady(Nanos(0));
    RunFrom(Nanos(0));
  }

  // Goes on from the last mark of the beginning.
  void Run(const RunBeginning& beginning) {
    const std::vector<RunMark>& marks = beginning.base->marks;
    const auto end = std::find_if(marks.begin(), marks.end(), [&](const RunMark& mark) {
      return mark.events > beginning.events;
    });
    if (end == marks.begin()) return Run();
    for (auto mark = marks.begin(); mark != end; ++mark) marks_.push_back(Here(*mark, beginning));
    const RunMark& mark = marks_.back();
    Repeat(beginning, mark.events, mark.limits);
    CountWaits();
    due_ = mark.due;
    std::make_heap(due_.begin(), due_.end(), std::greater<>());
    shares_.Restore(mark.copies);
    cores_.Restore(mark.cores);
    for (const RunMark::Queue& queue : mark.queues) {
      *QueueOf(queue.running) = {queue.running, queue.waiting, 0};
    }
    RunFrom(mark.now);
  }

 private:
  using Due = RunMark::Due;
  static constexpr int kNone = -1;

  struct Queue {
    int running = kNone;
    std::vector<int> waiting;  // those from `next` on, in the order in which they became ready
    size_t next = 0;
  };

  // The mark with the tasks of this graph.
  static RunMark Here(RunMark mark, const RunBeginning& beginning) {
    const std::vector<int>& task_of = beginning.task_of;
    for (Due& due : mark.due) due.task = task_of[due.task];
    for (FairShare::State::Copy& copy : mark.copies.copies) {
      copy.copy = TaskId(task_of[copy.copy.value]);
    }
    for (auto& [progress, task] : mark.cores.running) task = task_of[task];
    for (RunMark::Queue& queue : mark.queues) {
      queue.running = task_of[queue.running];
      for (int& task : queue.waiting) task = task_of[task];
    }
    return mark;
  }

  // The first so many events of the base, and what they made of limits.
  void Repeat(const RunBeginning& beginning, size_t events, size_t limits) {
    repeated_ = events;
    const TaskRun& base = beginning.base->run;
    for (size_t index = 0; index < events; ++index) {
      const auto [task, moment] = base.events[index];
      const int here = beginning.task_of[task.value];
      run_.events.push_back({TaskId(here), moment});
      if (moment == TaskMoment::kBegin) {
        run_.begin[here] = base.begin[task.value];
      } else {
        run_.end[here] = base.end[task.value];
      }
    }
    for (size_t index = 0; index < limits; ++index) {
      LimitChange change = base.limits[index];
      change.copy = TaskId(beginning.task_of[change.copy.value]);
      run_.limits.push_back(change);
    }
  }

  bool HasEnded(int task) const { return run_.end[task] >= Nanos(0); }

  // For those that have not ended yet.
  void CountWaits() {
    for (const auto& [task, before] : graph_.dependencies()) {
      if (!HasEnded(before.value)) ++waiting_for_[task.value];
    }
    ChainLanes();
  }

  // A lane's order is a dependency like any other: each of its tasks waits for the one before.
  void ChainLanes() {
    std::vector<int> last(static_cast<size_t>(graph_.lanes()), kNone);
    for (size_t task = 0; task < graph_.tasks().size(); ++task) {
      const std::optional<LaneId>& lane = graph_.tasks()[task].lane;
      if (!lane.has_value() || graph_.IsQueue(*lane)) continue;
      int& before = last[lane->value];
      if (before != kNone) {
        next_in_lane_[before] = static_cast<int>(task);
        if (!HasEnded(before)) ++waiting_for_[task];
      }
      before = static_cast<int>(task);
    }
  }

  void RunFrom(Nanos now) {
    while (Advance(now)) {
    }
    run_.uses = shares_.uses();
    run_.limits.insert(run_.limits.end(), shares_.limits().begin(), shares_.limits().end());
    // Not `now`: what was due last may be a forecast that a sooner end has replaced.
    const std::vector<TaskEvent>& events = run_.events;
    run_.end_time = events.empty() ? Nanos(0) : run_.end[events.back().task.value];
    for (size_t task = 0; task < run_.begin.size(); ++task) {
      if (run_.begin[task] < Nanos(0)) run_.stuck.push_back(TaskId(static_cast<int>(task)));
    }
  }

  void AddDue(const Due& due) {
    due_.push_back(due);
    std::push_heap(due_.begin(), due_.end(), std::greater<>());
  }

  void BeginReady(Nanos now) {
    for (const int task : ready_) {
      run_.begin[task] = now;
      run_.events.push_back({TaskId(task), TaskMoment::kBegin});
      const Task& begun = graph_.tasks()[task];
      if (begun.on_core && !graph_.cores().empty() && begun.duration > Nanos(0)) {
        cores_.Begin(task, begun.duration, now);
      } else if (begun.duration == Nanos(0)) {
        due_now_.push_back(task);
      } else {
        AddDue({now + begun.duration, task, 0});
      }
    }
    ready_.clear();
  }

  // Goes to the next moment at which something is due; false when there is none.
  bool Advance(Nanos& now) {
    if (due_now_.empty() && (due_.empty() || due_.front().time > now)) {
      Forecast(now);
      MarkNow(now);
    }
    const std::optional<Nanos> core = shares_cores_ ? cores_.NextEnd() : std::nullopt;
    if (due_now_.empty()) {
      if (due_.empty() && !core.has_value()) return false;
      now = due_.empty() || (core.has_value() && *core < due_.front().time) ? *core
                                                                            : due_.front().time;
      while (!due_.empty() && due_.front().time == now) {
        const Due due = due_.front();
        std::pop_heap(due_.begin(), due_.end(), std::greater<>());
        due_.pop_back();
        Handle(due, now);
      }
    } else {  // nothing else is: all of that has been handled before these began
      std::sort(due_now_.begin(), due_now_.end());
      for (const int task : due_now_) Handle({now, task, 0}, now);
      due_now_.clear();
    }
    if (core.has_value() && *core == now) {
      for (const int task : cores_.TakeEnded(now)) {
        if (!shares_.IsMoving(TaskId(task))) End(task, now);
      }
    }
    BeginReady(now);
    return true;
  }

  void Forecast(Nanos now) {
    for (const FairShare::Forecast& forecast : shares_.Settle(now)) {
      AddDue({forecast.end, forecast.copy.value, forecast.version});
    }
  }

  void MarkNow(Nanos now) {
    if (events_between_marks_ == 0) return;
    const size_t last = marks_.empty() ? 0 : marks_.back().events;
    if (run_.events.size() < last + events_between_marks_) return;
    RunMark& mark =
        marks_.emplace_back(RunMark{.events = run_.events.size(),
                                    .limits = run_.limits.size() + shares_.limits().size(),
                                    .now = now,
                                    .due = due_,
                                    .copies = shares_.Save(),
                                    .cores = cores_.Save()});
    for (const Queue& queue : queues_) {
      if (queue.running == kNone) continue;
      const auto next = queue.waiting.begin() + static_cast<std::ptrdiff_t>(queue.next);
      mark.queues.push_back({queue.running, {next, queue.waiting.end()}});
    }
  }

  void Handle(const Due& due, Nanos now) {
    const Task& task = graph_.tasks()[due.task];
    const bool moves_bytes = task.path.has_value() && task.bytes > Bytes(0);
    if (due.version == 0) {
      if (shares_cores_ && task.core_work > Nanos(0)) cores_.Begin(due.task, task.core_work, now);
      if (moves_bytes) shares_.Begin(TaskId(due.task), now);
    } else if (shares_.IsNewest(TaskId(due.task), due.version)) {
      shares_.End(TaskId(due.task), now);
    } else {
      return;
    }
    if (!shares_.IsMoving(TaskId(due.task)) && !cores_.IsRunning(due.task)) End(due.task, now);
  }

  void End(int task, Nanos now) {
    run_.end[task] = now;
    run_.events.push_back({TaskId(task), TaskMoment::kEnd});
    if (next_in_lane_[task] >= 0) OneLessToWaitFor(next_in_lane_[task]);
    if (Queue* queue = QueueOf(task)) EndInQueue(*queue);
    for (int place = first_follower_[task]; place < first_follower_[task + 1]; ++place) {
      OneLessToWaitFor(followers_[place]);
    }
  }

  void OneLessToWaitFor(int task) {
    if (--waiting_for_[task] == 0) Ready(task);
  }

  Queue* QueueOf(int task) {
    if (!has_queues_) return nullptr;
    const std::optional<LaneId>& lane = graph_.tasks()[task].lane;
    return lane.has_value() && graph_.IsQueue(*lane) ? &queues_[lane->value] : nullptr;
  }

  void Ready(int task) {
    Queue* queue = QueueOf(task);
    if (queue != nullptr && queue->running != kNone) {
      queue->waiting.push_back(task);
      return;
    }
    if (queue != nullptr) queue->running = task;
    ready_.push_back(task);
  }

  void EndInQueue(Queue& queue) {
    queue.running = queue.next < queue.waiting.size() ? queue.waiting[queue.next++] : kNone;
    if (queue.running != kNone) ready_.push_back(queue.running);
  }

  const TaskGraph& graph_;
  FairShare shares_;
  SharedCores cores_;
  const bool shares_cores_ = !graph_.cores().empty();
  const std::vector<int>& first_follower_;
  const std::vector<int>& followers_;
  std::vector<int>& waiting_for_;
  std::vector<int>& next_in_lane_;
  bool has_queues_ = false;
  std::vector<Queue> queues_;  // [lane]
  std::vector<int> ready_;
  std::vector<Due> due_;      // a heap, the earliest first
  std::vector<int> due_now_;  // those that begin and take no time
  std::vector<RunMark>& marks_;
  const size_t events_between_marks_;  // 0: no marks
  size_t& repeated_;
  TaskRun& run_;
};

}  // namespace

TaskRun RunTaskGraph(const TaskGraph& graph) {
  TaskRunSpace space;
  Runner(graph, space, RunMarks::kNone).Run();
  return std::move(space.run);
}

const TaskRun& RunTaskGraph(const TaskGraph& graph, TaskRunSpace& space, RunMarks marks) {
  Runner(graph, space, marks).Run();
  return space.run;
}

const TaskRun& RunTaskGraph(const TaskGraph& graph, const RunBeginning& beginning,
                            TaskRunSpace& space) {
  Runner(graph, space, RunMarks::kKept).Run(beginning);
  return space.run;
}

}  // namespace siphon
