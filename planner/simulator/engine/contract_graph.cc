#include "planner/simulator/engine/contract_graph.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace siphon {
namespace {

using Tasks = std::vector<int>;

// A task as it is now: itself, and those before it that it has swallowed.
struct Node {
  Nanos duration;
  Tasks before;  // without a copy before a copy of the same lane, which it keeps
  Tasks behind;
  bool is_left = true;
};

void AddOnce(Tasks& tasks, int task) {
  if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) tasks.push_back(task);
}

void Remove(Tasks& tasks, int task) {
  tasks.erase(std::remove(tasks.begin(), tasks.end(), task), tasks.end());
}

class Contraction {
 public:
  explicit Contraction(const TaskGraph& graph) : graph_(graph) {
    for (const Task& task : graph.tasks()) nodes_.push_back({.duration = task.duration});
    for (const auto& [task, before] : graph.dependencies()) Join(before.value, task.value);
    std::vector<int> last(static_cast<size_t>(graph.lanes()), kNone);
    for (int task = 0; task < static_cast<int>(nodes_.size()); ++task) {
      const std::optional<LaneId>& lane = graph.tasks()[task].lane;
      if (!lane) continue;
      if (graph.IsQueue(*lane)) {
        has_queues_ = true;
        continue;
      }
      const int before = std::exchange(last[lane->value], task);
      if (before != kNone && !(IsCopy(before) && IsCopy(task))) Join(before, task);
    }
  }

  TaskGraph Run() {
    ForEach(&Contraction::Follow);
    if (!has_queues_) {
      ForEach(&Contraction::LeaveOut);
      ForEach(&Contraction::Follow);  // some have nothing but one other before them now
    }
    return Written();
  }

 private:
  static constexpr int kNone = -1;

  void ForEach(void (Contraction::*change)(int task)) {
    for (int task = 0; task < static_cast<int>(nodes_.size()); ++task) (this->*change)(task);
  }

  void Join(int before, int task) {
    AddOnce(nodes_[before].behind, task);
    AddOnce(nodes_[task].before, before);
  }

  bool IsCopy(int task) const { return graph_.tasks()[task].path.has_value(); }
  bool IsInQueue(int task) const {
    const std::optional<LaneId>& lane = graph_.tasks()[task].lane;
    return lane && graph_.IsQueue(*lane);
  }
  // Takes its time alone, wherever copies go.
  bool IsPlain(int task) const { return !IsCopy(task) && !IsInQueue(task); }

  // Swallows the one before it, where there is only that, which has nothing else behind it.
  void Follow(int task) {
    Node& node = nodes_[task];
    if (!node.is_left || !IsPlain(task) || node.before.size() != 1) return;
    if (has_queues_ && node.duration == Nanos(0)) return;
    const int swallowed = node.before.front();
    Node& other = nodes_[swallowed];
    if (!IsPlain(swallowed) || other.behind.size() != 1) return;
    node.duration += other.duration;
    node.before = std::move(other.before);
    for (const int before : node.before) {
      std::replace(nodes_[before].behind.begin(), nodes_[before].behind.end(), swallowed, task);
    }
    other.is_left = false;
  }

  void LeaveOut(int task) {
    Node& node = nodes_[task];
    if (!node.is_left || !IsPlain(task) || node.duration > Nanos(0)) return;
    const size_t before = node.before.size();
    const size_t behind = node.behind.size();
    if (before * behind > before + behind) return;
    for (const int one : node.before) Remove(nodes_[one].behind, task);
    for (const int one : node.behind) Remove(nodes_[one].before, task);
    for (const int one : node.before) {
      for (const int other : node.behind) Join(one, other);
    }
    node.is_left = false;
  }

  TaskGraph Written() const {
    TaskGraph written;
    CopyLanesAndWays(written);
    std::vector<TaskId> written_as(nodes_.size(), TaskId(kNone));
    for (int task = 0; task < static_cast<int>(nodes_.size()); ++task) {
      if (!nodes_[task].is_left) continue;
      const auto& [lane, path, duration, bytes, on_core, core_work] = graph_.tasks()[task];
      written_as[task] =
          path ? written.AddCopy(lane, bytes, duration, *path, core_work)
               : written.AddTask(IsInQueue(task) ? lane : std::nullopt, nodes_[task].duration);
    }
    // Of what waits for the same task, that comes first which did.
    std::vector<Tasks> waits;
    for (const Node& node : nodes_) waits.push_back(node.is_left ? node.before : Tasks());
    const auto add = [&](int task, int before) {
      written.AddDependency(written_as[task], written_as[before]);
    };
    for (const auto& [task, before] : graph_.dependencies()) {
      Tasks& left = waits[task.value];
      const auto found = std::find(left.begin(), left.end(), before.value);
      if (found == left.end()) continue;
      left.erase(found);
      add(task.value, before.value);
    }
    for (int task = 0; task < static_cast<int>(nodes_.size()); ++task) {
      for (const int before : waits[task]) add(task, before);
    }
    return written;
  }

  void CopyLanesAndWays(TaskGraph& written) const {
    for (int lane = 0; lane < graph_.lanes(); ++lane) {
      graph_.IsQueue(LaneId(lane)) ? written.AddQueue() : written.AddLane();
    }
    for (const SharedCapacity& capacity : graph_.capacities()) {
      written.AddCapacity(capacity.name, capacity.rate);
    }
    for (int id = 0; id < static_cast<int>(graph_.capacities().size()); ++id) {
      const SharedCapacity& one = graph_.capacities()[id];
      if (!one.other_direction || one.other_direction->value < id) continue;
      const SharedCapacity& other = graph_.capacities()[one.other_direction->value];
      written.JoinDirections(CapacityId(id), one.rate_both, *one.other_direction, other.rate_both);
    }
    for (const std::vector<CapacityId>& path : graph_.paths()) written.AddPath(path);
  }

  const TaskGraph& graph_;
  bool has_queues_ = false;  // with tasks in them
  std::vector<Node> nodes_;  // [task]
};

}  // namespace

TaskGraph ContractGraph(const TaskGraph& graph) {
  return graph.cores().empty() ? Contraction(graph).Run() : graph;
}

}  // namespace siphon
