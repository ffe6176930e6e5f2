#include "planner/simulator/engine/common_beginning.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace siphon {
namespace {

constexpr int kNone = -1;

// A part of a graph: tasks [task, task_end) and dependencies [dependency, dependency_end).
struct Part {
  size_t task = 0;
  size_t task_end = 0;
  size_t dependency = 0;
  size_t dependency_end = 0;
};

Part PartOf(const TaskGraph& graph, size_t part) {
  const std::vector<TaskGraph::PartBegin>& parts = graph.parts();
  const bool is_last = part + 1 == parts.size();
  return {parts[part].tasks, is_last ? graph.tasks().size() : parts[part + 1].tasks,
          parts[part].dependencies,
          is_last ? graph.dependencies().size() : parts[part + 1].dependencies};
}

// Whether copies go at the same rates in both, where they take paths that both have.
bool HaveSameRates(const TaskGraph& base, const TaskGraph& graph) {
  const auto same = [](const SharedCapacity& a, const SharedCapacity& b) {
    return a.rate == b.rate && a.rate_both == b.rate_both && a.other_direction == b.other_direction;
  };
  const auto& capacities = base.capacities();
  const auto& others = graph.capacities();
  const size_t shared = std::min(capacities.size(), others.size());
  const size_t paths = std::min(base.paths().size(), graph.paths().size());
  return base.cores() == graph.cores() &&
         std::equal(capacities.begin(), capacities.begin() + static_cast<std::ptrdiff_t>(shared),
                    others.begin(), same) &&
         std::equal(base.paths().begin(), base.paths().begin() + static_cast<std::ptrdiff_t>(paths),
                    graph.paths().begin());
}

// Which lanes are queues, of two graphs: mostly the same ones.
class Queues {
 public:
  Queues(const TaskGraph& base, const TaskGraph& graph) : base_(base), graph_(graph) {
    const int lanes = std::min(base.lanes(), graph.lanes());
    for (int lane = 0; lane < lanes; ++lane) {
      are_alike_ &= base.IsQueue(LaneId(lane)) == graph.IsQueue(LaneId(lane));
    }
  }

  // Whether both tasks are in one, or none is.
  bool AreSame(const Task& a, const Task& b) const {
    if (are_alike_ && a.lane == b.lane) return true;
    return IsInOne(base_, a) == IsInOne(graph_, b);
  }

 private:
  static bool IsInOne(const TaskGraph& graph, const Task& task) {
    return task.lane.has_value() && graph.IsQueue(*task.lane);
  }

  const TaskGraph& base_;
  const TaskGraph& graph_;
  bool are_alike_ = true;
};

size_t SameTasks(const TaskGraph& base, const Part& from, const TaskGraph& graph, const Part& to,
                 const Queues& queues) {
  const size_t most = std::min(from.task_end - from.task, to.task_end - to.task);
  const Task* const a = base.tasks().data() + from.task;
  const Task* const b = graph.tasks().data() + to.task;
  // The order of a lane is compared as what it is: what a task waits for.
  const auto is_same = [&](const Task& task, const Task& other) {
    return task.duration == other.duration && task.bytes == other.bytes &&
           task.path == other.path && task.on_core == other.on_core &&
           task.core_work == other.core_work && queues.AreSame(task, other);
  };
  size_t same = 0;
  while (same < most && is_same(a[same], b[same])) ++same;
  return same;
}

// Whether a part differs so early that the run has no mark from which to go on: then there is no
// use in looking closer.
bool DiffersBeforeMarks(const TaskGraph& base, const TaskRunSpace& run, const TaskGraph& graph,
                        const std::vector<size_t>& common) {
  if (run.marks.empty()) return true;
  for (size_t part = 0; part < base.parts().size(); ++part) {
    const Part from = PartOf(base, part);
    const Part to = PartOf(graph, part);
    const size_t same = common[part];
    if (same == from.task_end - from.task && same == to.task_end - to.task) continue;
    if (same == 0 || run.run.end[from.task + same - 1] < run.marks.front().now) return true;
  }
  return false;
}

// One graph, and what is known of its tasks.
struct Side {
  explicit Side(const TaskGraph& of)
      : graph(of),
        other(of.tasks().size(), kNone),
        before(of.tasks().size(), kNone),
        ready(of.tasks().size(), kNone),
        is_blocked(of.tasks().size(), 0) {
    std::vector<int> last(static_cast<size_t>(of.lanes()), kNone);
    for (size_t task = 0; task < of.tasks().size(); ++task) {
      const std::optional<LaneId>& lane = of.tasks()[task].lane;
      if (!lane.has_value() || of.IsQueue(*lane)) continue;
      before[task] = std::exchange(last[lane->value], static_cast<int>(task));
    }
  }

  const TaskGraph& graph;
  std::vector<int> other;   // [task]: the same task of the other graph
  std::vector<int> before;  // [task]: before it in its lane
  // [task]: place of the event of the base behind which nothing of what both have keeps it waiting.
  std::vector<int> ready;
  std::vector<uint8_t> is_blocked;  // [task]: waits for a task that only its own graph has
};

class Comparison {
 public:
  Comparison(const TaskGraph& base, const TaskRun& run, const TaskGraph& graph,
             const std::vector<size_t>& common)
      : base_(base), graph_(graph), ended_(base.tasks().size(), kNone), differs_(ended_.size(), 0) {
    for (size_t place = 0; place < run.events.size(); ++place) {
      const TaskEvent& event = run.events[place];
      if (event.moment == TaskMoment::kEnd) ended_[event.task.value] = static_cast<int>(place);
    }
    for (size_t part = 0; part < base.parts().size(); ++part) Match(part, common[part]);
  }

  // kNone: cannot be told. Otherwise so many events are the same.
  int FindEvents(int all) {
    for (size_t part = 0; part < base_.graph.parts().size(); ++part) {
      if (!CompareDependencies(part)) return kNone;
    }
    CompareLanes();
    int events = all;
    const auto stop = [&events](const Side& side, size_t task) {
      if (side.is_blocked[task] == 0) events = std::min(events, side.ready[task]);
    };
    for (size_t task = 0; task < base_.other.size(); ++task) {
      const int other = base_.other[task];
      if (other != kNone && differs_[task] == 0 &&
          base_.is_blocked[task] == graph_.is_blocked[other]) {
        continue;
      }
      stop(base_, task);
      if (other != kNone) stop(graph_, static_cast<size_t>(other));
    }
    for (size_t task = 0; task < graph_.other.size(); ++task) {
      if (graph_.other[task] == kNone) stop(graph_, task);
    }
    return events;
  }

  std::vector<int> TakeTasks() { return std::move(base_.other); }

 private:
  // Tasks of a part are the same until the first one that is not, or that waits for another one.
  void Match(size_t part, size_t same) {
    const Part from = PartOf(base_.graph, part);
    const Part to = PartOf(graph_.graph, part);
    same = std::min(same, SameWaits(from, to));
    for (size_t task = 0; task < same; ++task) {
      base_.other[from.task + task] = static_cast<int>(to.task + task);
      graph_.other[to.task + task] = static_cast<int>(from.task + task);
    }
  }

  // How many tasks stand before the first of them whose dependencies are written otherwise.
  size_t SameWaits(const Part& from, const Part& to) const {
    const auto& waits = base_.graph.dependencies();
    const auto& others = graph_.graph.dependencies();
    const auto shift = static_cast<int>(to.task) - static_cast<int>(from.task);
    size_t wait = from.dependency;
    size_t other = to.dependency;
    for (; wait < from.dependency_end && other < to.dependency_end; ++wait, ++other) {
      const auto& [task, before] = waits[wait];
      const auto& [other_task, other_before] = others[other];
      const auto differ = [&](TaskId a, TaskId b) {
        // What stands before the part is compared later.
        const bool within = static_cast<size_t>(a.value) >= from.task;
        if (within != (static_cast<size_t>(b.value) >= to.task)) return true;
        return within && a.value + shift != b.value;
      };
      if (differ(task, other_task) || differ(before, other_before)) break;
    }
    size_t same = from.task_end - from.task;
    const auto cut = [&same](TaskId task, size_t begin) {
      if (static_cast<size_t>(task.value) < begin) return;
      same = std::min(same, static_cast<size_t>(task.value) - begin);
    };
    if (wait < from.dependency_end) cut(waits[wait].first, from.task);
    if (other < to.dependency_end) cut(others[other].first, to.task);
    return same;
  }

  static bool IsShared(const Side& side, const std::pair<TaskId, TaskId>& wait) {
    return side.other[wait.first.value] != kNone && side.other[wait.second.value] != kNone;
  }

  int EndOf(const Side& side, int task) const {
    return ended_[&side == &base_ ? task : side.other[task]];
  }

  void Wait(Side& side, int task, int before) {
    if (side.other[before] == kNone) {
      side.is_blocked[task] = 1;
    } else {
      side.ready[task] = std::max(side.ready[task], EndOf(side, before));
    }
  }

  // What both have must stand in the same order: it is the order in which tasks become ready.
  bool CompareDependencies(size_t part) {
    const auto& waits = base_.graph.dependencies();
    const auto& others = graph_.graph.dependencies();
    const Part from = PartOf(base_.graph, part);
    const Part to = PartOf(graph_.graph, part);
    size_t wait = from.dependency;
    size_t other = to.dependency;
    while (true) {
      for (; wait < from.dependency_end && !IsShared(base_, waits[wait]); ++wait) {
        Wait(base_, waits[wait].first.value, waits[wait].second.value);
      }
      for (; other < to.dependency_end && !IsShared(graph_, others[other]); ++other) {
        Wait(graph_, others[other].first.value, others[other].second.value);
      }
      const bool ends = wait == from.dependency_end;
      if (ends || other == to.dependency_end) return ends && other == to.dependency_end;
      const auto& [task, before] = waits[wait++];
      const auto& [other_task, other_before] = others[other++];
      if (base_.other[task.value] != other_task.value) return false;
      if (base_.other[before.value] != other_before.value) differs_[task.value] = 1;
      Wait(base_, task.value, before.value);
      Wait(graph_, other_task.value, other_before.value);
    }
  }

  void CompareLanes() {
    for (size_t task = 0; task < base_.other.size(); ++task) {
      const int before = base_.before[task];
      if (before != kNone) Wait(base_, static_cast<int>(task), before);
      const int other = base_.other[task];
      if (other == kNone) continue;
      const int other_before = graph_.before[other];
      const int expected = before == kNone ? kNone : base_.other[before];
      const bool none = before == kNone && other_before == kNone;
      if (none || (expected != kNone && expected == other_before)) continue;
      differs_[task] = 1;
    }
    for (size_t task = 0; task < graph_.other.size(); ++task) {
      const int before = graph_.before[task];
      if (before != kNone) Wait(graph_, static_cast<int>(task), before);
    }
  }

  Side base_;
  Side graph_;
  std::vector<int> ended_;        // [task of the base]: place of the event
  std::vector<uint8_t> differs_;  // [task of the base]: both have it, and it waits for others
};

}  // namespace

std::vector<size_t> CommonTasks(const TaskGraph& base, const TaskGraph& graph) {
  if (base.parts().size() != graph.parts().size()) return {};
  const Queues queues(base, graph);
  std::vector<size_t> tasks(base.parts().size());
  for (size_t part = 0; part < tasks.size(); ++part) {
    tasks[part] = SameTasks(base, PartOf(base, part), graph, PartOf(graph, part), queues);
  }
  return tasks;
}

RunBeginning FindCommonBeginning(const TaskGraph& base, const TaskRunSpace& run,
                                 const TaskGraph& graph, const std::vector<size_t>& common) {
  RunBeginning beginning{.base = &run};
  if (base.parts().size() != graph.parts().size() || !HaveSameRates(base, graph)) return beginning;
  if (DiffersBeforeMarks(base, run, graph, common)) return beginning;
  Comparison comparison(base, run.run, graph, common);
  const int events = comparison.FindEvents(static_cast<int>(run.run.events.size()));
  if (events <= 0) return beginning;
  beginning.events = static_cast<size_t>(events);
  beginning.task_of = comparison.TakeTasks();
  return beginning;
}

}  // namespace siphon
