#include "planner/simulator/step_runs.h"

#include <numeric>
#include <utility>
#include <vector>

#include "planner/simulator/engine/common_beginning.h"

namespace siphon {

StepGraph StepRuns::TakeSpace() {
  records_[free_].is_complete = false;
  return std::move(records_[free_].step);
}

StepRuns::Answer StepRuns::Run(StepGraph graph) {
  Record& record = records_[free_];
  record.step = std::move(graph);
  const TaskGraph& tasks = record.step.graph;
  const auto common_with = [&](size_t place) {
    const Record& other = records_[place];
    return other.is_complete ? CommonTasks(other.step.graph, tasks) : std::vector<size_t>();
  };
  const auto sum = [](const std::vector<size_t>& common) {
    return std::accumulate(common.begin(), common.end(), size_t{0});
  };
  std::vector<size_t> common = common_with(base_);
  std::vector<size_t> with_newest = common_with(newest_);
  // What the newest one was like is taken again where both are as good: a search comes back to it.
  if (sum(with_newest) > sum(common)) {
    std::swap(newest_, base_);
    std::swap(with_newest, common);
  }
  Record& base = records_[base_];
  if (base.is_complete) {
    const RunBeginning beginning = FindCommonBeginning(base.step.graph, base.space, tasks, common);
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
