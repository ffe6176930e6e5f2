#include "planner/simulator/engine/graph_clock.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "planner/status.h"

namespace siphon {
namespace {

// Of those in order of time that are over.
constexpr size_t kMostPast = 64;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

struct GraphClock::Run {
  const TaskGraph& graph;
  Nanos most;
  absl::Span<const Nanos> tails;
  Nanos now;
  size_t ended = 0;
  bool is_late = false;
};

GraphClock::GraphClock(const TaskGraph& graph)
    : shares_(graph),
      first_follower_(graph.tasks().size() + 1),
      waits_(graph.tasks().size()),
      queue_of_(graph.tasks().size(), kNone),
      place_(graph.tasks().size()) {
  SIPHON_CHECK(graph.cores().empty(), "no tasks share cores");
  // A lane's order is a dependency like any other.
  std::vector<std::pair<int, int>> edges;  // before, task
  std::vector<int> last(static_cast<size_t>(graph.lanes()), kNone);
  for (int task = 0; task < static_cast<int>(graph.tasks().size()); ++task) {
    const std::optional<LaneId>& lane = graph.tasks()[task].lane;
    if (!lane) continue;
    if (graph.IsQueue(*lane)) {
      queue_of_[task] = lane->value;
      continue;
    }
    const int before = std::exchange(last[lane->value], task);
    if (before != kNone) edges.emplace_back(before, task);
  }
  for (const auto& [task, before] : graph.dependencies()) {
    edges.emplace_back(before.value, task.value);
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [before, task] : edges) {
    ++first_follower_[before + 1];
    followers_.push_back(task);
    ++waits_[task];
  }
  for (size_t task = 0; task < waits_.size(); ++task) {
    first_follower_[task + 1] += first_follower_[task];
  }
  queues_.resize(static_cast<size_t>(graph.lanes()));
}

std::optional<Nanos> GraphClock::EndWithin(const TaskGraph& graph, Nanos most,
                                           absl::Span<const Nanos> tails) {
  Run run{.graph = graph, .most = most, .tails = tails};
  shares_.Restart(graph);
  waiting_for_ = waits_;
  for (Queue& queue : queues_) queue = {};
  ready_.clear();
  due_now_.clear();
  due_.clear();
  next_due_ = 0;
  moving_.clear();
  for (size_t task = 0; task < waits_.size(); ++task) {
    if (waits_[task] == 0) Ready(static_cast<int>(task));
  }
  BeginReady(run);
  while (!run.is_late) {
    if (!due_now_.empty()) {
      ended_.swap(due_now_);
      due_now_.clear();
      std::sort(ended_.begin(), ended_.end());
      for (const int task : ended_) EndOwnTime(task, run);
    } else {
      for (const FairShare::Forecast& forecast : shares_.Settle(run.now)) {
        moving_[place_[forecast.copy.value]].time = forecast.end;
      }
      if (!Advance(run)) break;
    }
    BeginReady(run);
  }
  if (run.is_late || run.now > most) return std::nullopt;
  SIPHON_CHECK(run.ended == waits_.size(), "no tasks wait for each other");
  return run.now;
}

// To the first moment at which something ends; false where nothing is under way.
bool GraphClock::Advance(Run& run) {
  // One thing after the other: compilers make this a loop without branches.
  int64_t moving_end = kNever;
  for (const Due& moving : moving_) moving_end = std::min(moving_end, moving.time.value);
  const int64_t own_end = next_due_ < due_.size() ? due_[next_due_].time.value : kNever;
  const int64_t now = std::min(own_end, moving_end);
  if (now == kNever) return false;
  run.now = Nanos(now);
  ended_.clear();
  for (; next_due_ < due_.size() && due_[next_due_].time == run.now; ++next_due_) {
    ended_.push_back(due_[next_due_].task);
    place_[due_[next_due_].task] = kNone;
  }
  if (moving_end == now) {
    for (const Due& moving : moving_) {
      if (moving.time == run.now) ended_.push_back(moving.task);
    }
  }
  // In the order of tasks, as what is first in a queue hangs on it.
  if (ended_.size() > 1) std::sort(ended_.begin(), ended_.end());
  for (const int task : ended_) {
    if (place_[task] == kNone) {
      EndOwnTime(task, run);
    } else {
      EndMoving(task, run);
    }
  }
  return true;
}

// Mostly behind all others.
void GraphClock::AddDue(const Due& due) {
  if (next_due_ > kMostPast) {
    due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(next_due_));
    next_due_ = 0;
  }
  size_t place = due_.size();
  due_.push_back(due);
  for (; place > next_due_ && due_[place - 1].time > due.time; --place) {
    due_[place] = due_[place - 1];
  }
  due_[place] = due;
}

void GraphClock::BeginReady(Run& run) {
  for (const int task : ready_) {
    run.is_late |= run.now + run.tails[task] > run.most;
    const Nanos duration = run.graph.tasks()[task].duration;
    if (duration == Nanos(0)) {
      due_now_.push_back(task);
    } else {
      AddDue({run.now + duration, task});
    }
  }
  ready_.clear();
}

void GraphClock::EndOwnTime(int task, Run& run) {
  const Task& facts = run.graph.tasks()[task];
  if (!facts.path.has_value() || facts.bytes == Bytes(0)) return End(task, run);
  shares_.Begin(TaskId(task), run.now);
  place_[task] = static_cast<int>(moving_.size());
  moving_.push_back({Nanos(kNever), task});
}

void GraphClock::EndMoving(int task, Run& run) {
  shares_.End(TaskId(task), run.now);
  Due& here = moving_[place_[task]];
  here = moving_.back();
  place_[here.task] = place_[task];
  moving_.pop_back();
  End(task, run);
}

void GraphClock::End(int task, Run& run) {
  ++run.ended;
  if (queue_of_[task] != kNone) {
    Queue& queue = queues_[queue_of_[task]];
    queue.running = queue.next < queue.waiting.size() ? queue.waiting[queue.next++] : kNone;
    if (queue.running != kNone) ready_.push_back(queue.running);
  }
  for (int at = first_follower_[task]; at < first_follower_[task + 1]; ++at) {
    if (--waiting_for_[followers_[at]] == 0) Ready(followers_[at]);
  }
}

void GraphClock::Ready(int task) {
  if (queue_of_[task] != kNone) {
    Queue& queue = queues_[queue_of_[task]];
    if (queue.running != kNone) return queue.waiting.push_back(task);
    queue.running = task;
  }
  ready_.push_back(task);
}

}  // namespace siphon
