#include "planner/simulator/step_runs.h"

#include <utility>

#include "planner/simulator/common_beginning.h"

namespace siphon {

StepGraph StepRuns::TakeSpace() {
  records_[free_].is_complete = false;
  return std::move(records_[free_].step);
}

StepRuns::Answer StepRuns::Run(StepGraph graph) {
  Record& record = records_[free_];
  record.step = std::move(graph);
  const TaskGraph& tasks = record.step.graph;
  const auto likeness = [&](size_t place) {
    const Record& other = records_[place];
    return other.is_complete ? CommonTasks(other.step.graph, tasks) : 0;
  };
  // What the newest one was like is taken again where both are as good: a search comes back to it.
  if (likeness(newest_) > likeness(base_)) std::swap(newest_, base_);
  Record& base = records_[base_];
  if (base.is_complete) {
    const RunBeginning beginning = FindCommonBeginning(base.step.graph, base.space, tasks);
    RunTaskGraph(tasks, beginning, record.space);
    events_taken_ += record.space.repeated;
  } else {
    RunTaskGraph(tasks, record.space, RunMarks::kKept);
  }
  record.is_complete = record.space.run.stuck.empty();
  events_ += record.space.run.events.size();
  std::swap(free_, newest_);
  return {record.step, record.space.run};
}

}  // namespace siphon
