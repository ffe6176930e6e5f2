#include "planner/simulator/engine/task_graph.h"

#include "planner/status.h"

namespace siphon {

void TaskGraph::Clear() {
  is_queue_.clear();
  cores_.clear();
  tasks_.clear();
  dependencies_.clear();
  capacities_.clear();
  paths_.clear();
  parts_.assign(1, {});
}

LaneId TaskGraph::AddLane() {
  is_queue_.push_back(false);
  return LaneId(lanes() - 1);
}

LaneId TaskGraph::AddQueue() {
  is_queue_.push_back(true);
  return LaneId(lanes() - 1);
}

CapacityId TaskGraph::AddCapacity(std::string name, BytesPerSecond rate) {
  SIPHON_CHECK(rate.value >= 0, "a rate is not negative");
  capacities_.push_back({.name = std::move(name), .rate = rate});
  return CapacityId(static_cast<int>(capacities_.size()) - 1);
}

void TaskGraph::JoinDirections(CapacityId a, BytesPerSecond a_both, CapacityId b,
                               BytesPerSecond b_both) {
  SharedCapacity& first = capacities_.at(a.value);
  SharedCapacity& second = capacities_.at(b.value);
  SIPHON_CHECK(a != b && !first.other_direction && !second.other_direction,
               "a wire has two directions");
  first.rate_both = a_both;
  first.other_direction = b;
  second.rate_both = b_both;
  second.other_direction = a;
}

PathId TaskGraph::AddPath(std::vector<CapacityId> capacities) {
  paths_.push_back(std::move(capacities));
  return PathId(static_cast<int>(paths_.size()) - 1);
}

void TaskGraph::BeginPart() { parts_.push_back({tasks_.size(), dependencies_.size()}); }

TaskId TaskGraph::AddTask(std::optional<LaneId> lane, Nanos duration) {
  SIPHON_CHECK(duration >= Nanos(0), "a task does not end before it begins");
  tasks_.push_back({.lane = lane, .path = std::nullopt, .duration = duration});
  return TaskId(static_cast<int>(tasks_.size()) - 1);
}

TaskId TaskGraph::AddWork(LaneId lane, Nanos work) {
  const TaskId task = AddTask(lane, work);
  tasks_.back().on_core = true;
  return task;
}

TaskId TaskGraph::AddCopy(std::optional<LaneId> lane, Bytes bytes, Nanos latency, PathId path,
                          Nanos core_work) {
  SIPHON_CHECK(bytes >= Bytes(0) && latency >= Nanos(0) && core_work >= Nanos(0),
               "a copy has bytes and takes time");
  tasks_.push_back(
      {.lane = lane, .path = path, .duration = latency, .bytes = bytes, .core_work = core_work});
  return TaskId(static_cast<int>(tasks_.size()) - 1);
}

void TaskGraph::Reroute(TaskId copy, PathId path, Nanos latency) {
  Task& task = tasks_[copy.value];
  SIPHON_CHECK(task.path.has_value() && latency >= Nanos(0), "a copy takes a path");
  task.path = path;
  task.duration = latency;
}

}  // namespace siphon
