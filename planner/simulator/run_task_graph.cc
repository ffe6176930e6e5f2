#include "planner/simulator/run_task_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

namespace siphon {
namespace {

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
  Runner(const TaskGraph& graph, TaskRunSpace& space)
      : graph_(graph),
        shares_(graph),
        cores_(graph.cores()),
        first_follower_(space.first_follower),
        followers_(space.followers),
        waiting_for_(space.waiting_for),
        next_in_lane_(space.next_in_lane),
        queues_(static_cast<size_t>(graph.lanes())),
        run_(space.run) {
    FindFollowers(graph, space);
    waiting_for_.assign(graph.tasks().size(), 0);
    next_in_lane_.assign(graph.tasks().size(), -1);
    run_.events.clear();
    run_.stuck.clear();
    run_.begin.assign(graph.tasks().size(), Nanos(-1));
    run_.end.assign(graph.tasks().size(), Nanos(-1));
    run_.events.reserve(2 * graph.tasks().size());
    for (const auto& [task, before] : graph.dependencies()) ++waiting_for_[task.value];
    for (int lane = 0; lane < graph.lanes(); ++lane) has_queues_ |= graph.IsQueue(LaneId(lane));
    ChainLanes();
  }

  void Run() {
    for (size_t task = 0; task < waiting_for_.size(); ++task) {
      if (waiting_for_[task] == 0) Ready(static_cast<int>(task));
    }
    Nanos now(0);
    BeginReady(now);
    while (Advance(now)) {
    }
    run_.uses = shares_.uses();
    run_.end_time = now;
    for (size_t task = 0; task < run_.begin.size(); ++task) {
      if (run_.begin[task] < Nanos(0)) run_.stuck.push_back(TaskId(static_cast<int>(task)));
    }
  }

 private:
  // The task's time is over, or its newest forecast has come true.
  struct Due {
    Nanos time;
    int task;
    uint32_t version;  // of a forecast; 0: the task's own time is over
    friend bool operator>(const Due& a, const Due& b) {
      return std::tie(a.time, a.task, a.version) > std::tie(b.time, b.task, b.version);
    }
  };

  struct Queue {
    bool busy = false;
    std::vector<int> waiting;  // those from `next` on, in the order in which they became ready
    size_t next = 0;
  };

  // A lane's order is a dependency like any other: each of its tasks waits for the one before.
  void ChainLanes() {
    std::vector<int> last(static_cast<size_t>(graph_.lanes()), -1);
    for (size_t task = 0; task < graph_.tasks().size(); ++task) {
      const std::optional<LaneId>& lane = graph_.tasks()[task].lane;
      if (!lane.has_value() || graph_.IsQueue(*lane)) continue;
      int& before = last[lane->value];
      if (before >= 0) {
        next_in_lane_[before] = static_cast<int>(task);
        ++waiting_for_[task];
      }
      before = static_cast<int>(task);
    }
  }

  void BeginReady(Nanos now) {
    for (const int task : ready_) {
      run_.begin[task] = now;
      run_.events.push_back({TaskId(task), TaskMoment::kBegin});
      const Task& begun = graph_.tasks()[task];
      if (begun.on_core && !graph_.cores().empty() && begun.duration > Nanos(0)) {
        cores_.Begin(task, begun.duration, now);
      } else {
        due_.push({now + begun.duration, task, 0});
      }
    }
    ready_.clear();
  }

  // Goes to the next moment at which something is due; false when there is none.
  bool Advance(Nanos& now) {
    if (due_.empty() || due_.top().time > now) Forecast(now);
    const std::optional<Nanos> core = shares_cores_ ? cores_.NextEnd() : std::nullopt;
    if (due_.empty() && !core.has_value()) return false;
    now = due_.empty() || (core.has_value() && *core < due_.top().time) ? *core : due_.top().time;
    while (!due_.empty() && due_.top().time == now) {
      const Due due = due_.top();
      due_.pop();
      Handle(due, now);
    }
    if (core.has_value() && *core == now) {
      for (const int task : cores_.TakeEnded(now)) End(task, now);
    }
    BeginReady(now);
    return true;
  }

  void Forecast(Nanos now) {
    for (const FairShare::Forecast& forecast : shares_.Settle(now)) {
      due_.push({forecast.end, forecast.copy.value, forecast.version});
    }
  }

  void Handle(const Due& due, Nanos now) {
    const Task& task = graph_.tasks()[due.task];
    const bool moves_bytes = task.path.has_value() && task.bytes > Bytes(0);
    if (due.version == 0) {
      return moves_bytes ? shares_.Begin(TaskId(due.task), now) : End(due.task, now);
    }
    if (!shares_.IsNewest(TaskId(due.task), due.version)) return;
    shares_.End(TaskId(due.task), now);
    End(due.task, now);
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
    if (queue != nullptr && queue->busy) {
      queue->waiting.push_back(task);
      return;
    }
    if (queue != nullptr) queue->busy = true;
    ready_.push_back(task);
  }

  void EndInQueue(Queue& queue) {
    queue.busy = queue.next < queue.waiting.size();
    if (queue.busy) ready_.push_back(queue.waiting[queue.next++]);
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
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  TaskRun& run_;
};

}  // namespace

TaskRun RunTaskGraph(const TaskGraph& graph) {
  TaskRunSpace space;
  Runner(graph, space).Run();
  return std::move(space.run);
}

const TaskRun& RunTaskGraph(const TaskGraph& graph, TaskRunSpace& space) {
  Runner(graph, space).Run();
  return space.run;
}

}  // namespace siphon
