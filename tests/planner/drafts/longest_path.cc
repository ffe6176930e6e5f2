#include "tests/planner/drafts/longest_path.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "planner/status.h"

namespace siphon {

LongestPath::LongestPath(const TaskGraph& graph) {
  const std::vector<Task>& tasks = graph.tasks();
  std::vector<std::pair<int, int>> edges;  // from, to
  for (const auto& [task, before] : graph.dependencies()) {
    edges.emplace_back(before.value, task.value);
  }
  std::vector<int> last_in_lane(static_cast<size_t>(graph.lanes()), -1);
  for (int task = 0; task < static_cast<int>(tasks.size()); ++task) {
    const std::optional<LaneId> lane = tasks[task].lane;
    if (!lane || graph.IsQueue(*lane)) continue;
    int& last = last_in_lane[lane->value];
    if (last >= 0) edges.emplace_back(last, task);
    last = task;
  }
  std::vector<int> waiting_for(tasks.size());
  first_follower_.assign(tasks.size() + 1, 0);
  for (const auto& [from, to] : edges) {
    ++first_follower_[from + 1];
    ++waiting_for[to];
  }
  for (size_t task = 0; task < tasks.size(); ++task) {
    first_follower_[task + 1] += first_follower_[task];
  }
  followers_.resize(edges.size());
  std::vector<int> filled(first_follower_.begin(), first_follower_.end() - 1);
  for (const auto& [from, to] : edges) followers_[filled[from]++] = to;

  for (int task = 0; task < static_cast<int>(tasks.size()); ++task) {
    if (waiting_for[task] == 0) order_.push_back(task);
  }
  for (size_t place = 0; place < order_.size(); ++place) {
    const int task = order_[place];
    for (int at = first_follower_[task]; at < first_follower_[task + 1]; ++at) {
      if (--waiting_for[followers_[at]] == 0) order_.push_back(followers_[at]);
    }
  }
  SIPHON_CHECK(order_.size() == tasks.size(), "no tasks wait for each other");
}

void LongestPath::Run(absl::Span<const Nanos> durations) {
  begin_.assign(order_.size(), Nanos(0));
  tail_.assign(order_.size(), Nanos(0));
  length_ = Nanos(0);
  for (const int task : order_) {
    const Nanos end = begin_[task] + durations[task];
    length_ = std::max(length_, end);
    for (int at = first_follower_[task]; at < first_follower_[task + 1]; ++at) {
      Nanos& begin = begin_[followers_[at]];
      begin = std::max(begin, end);
    }
  }
  for (size_t place = order_.size(); place > 0; --place) {
    const int task = order_[place - 1];
    for (int at = first_follower_[task]; at < first_follower_[task + 1]; ++at) {
      const int follower = followers_[at];
      tail_[task] = std::max(tail_[task], durations[follower] + tail_[follower]);
    }
  }
}

}  // namespace siphon
