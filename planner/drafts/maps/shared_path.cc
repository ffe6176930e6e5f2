#include "planner/drafts/maps/shared_path.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "planner/status.h"

namespace siphon {
namespace {

using Edges = std::vector<std::pair<int, int>>;  // from, to

// With the order of lanes; queues order nothing.
Edges EdgesOf(const TaskGraph& graph) {
  Edges edges;
  for (const auto& [task, before] : graph.dependencies()) {
    edges.emplace_back(before.value, task.value);
  }
  std::vector<int> last_in_lane(static_cast<size_t>(graph.lanes()), -1);
  for (int task = 0; task < static_cast<int>(graph.tasks().size()); ++task) {
    const std::optional<LaneId> lane = graph.tasks()[task].lane;
    if (!lane || graph.IsQueue(*lane)) continue;
    int& last = last_in_lane[lane->value];
    if (last >= 0) edges.emplace_back(last, task);
    last = task;
  }
  return edges;
}

void Join(const Edges& edges, size_t tasks, std::vector<int>& first_next, std::vector<int>& next) {
  first_next.assign(tasks + 1, 0);
  for (const auto& [from, to] : edges) ++first_next[from + 1];
  for (size_t task = 0; task < tasks; ++task) first_next[task + 1] += first_next[task];
  next.resize(edges.size());
  std::vector<int> filled(first_next.begin(), first_next.end() - 1);
  for (const auto& [from, to] : edges) next[filled[from]++] = to;
}

std::vector<int> OrderOf(const Edges& edges, const std::vector<int>& first_next,
                         const std::vector<int>& next) {
  std::vector<int> waiting_for(first_next.size() - 1);
  for (const auto& [from, to] : edges) ++waiting_for[to];
  std::vector<int> order;
  for (size_t task = 0; task < waiting_for.size(); ++task) {
    if (waiting_for[task] == 0) order.push_back(static_cast<int>(task));
  }
  for (size_t place = 0; place < order.size(); ++place) {
    for (int at = first_next[order[place]]; at < first_next[order[place] + 1]; ++at) {
      if (--waiting_for[next[at]] == 0) order.push_back(next[at]);
    }
  }
  SIPHON_CHECK(order.size() == waiting_for.size(), "no tasks wait for each other");
  return order;
}

}  // namespace

SharedPath::SharedPath(const TaskGraph& graph, const std::vector<Chain>& chains) {
  const size_t tasks = graph.tasks().size();
  Edges edges = EdgesOf(graph);
  Join(edges, tasks, forwards_.first_next, forwards_.next);
  forwards_.order = OrderOf(edges, forwards_.first_next, forwards_.next);
  for (auto& [from, to] : edges) std::swap(from, to);
  Join(edges, tasks, backwards_.first_next, backwards_.next);
  backwards_.order.assign(forwards_.order.rbegin(), forwards_.order.rend());
  AddJobs(chains);
  for (Side* side : {&forwards_, &backwards_}) {
    side->job_of.assign(tasks, -1);
    for (size_t job = 0; job < side->jobs.size(); ++job) {
      side->job_of[side->jobs[job]] = static_cast<int>(job);
    }
    FindReached(*side);
  }
}

void SharedPath::AddJobs(const std::vector<Chain>& chains) {
  first_job_.push_back(0);
  for (size_t chain = 0; chain < chains.size(); ++chain) {
    const Chain& tasks = chains[chain];
    forwards_.jobs.insert(forwards_.jobs.end(), tasks.begin(), tasks.end());
    backwards_.jobs.insert(backwards_.jobs.end(), tasks.rbegin(), tasks.rend());
    chain_of_.insert(chain_of_.end(), tasks.size(), static_cast<int>(chain));
    first_job_.push_back(static_cast<int>(chain_of_.size()));
  }
}

void SharedPath::FindReached(Side& side) const {
  const auto count = static_cast<size_t>(chains());
  std::vector<int> reached(side.order.size() * count);  // [task][chain]
  side.reached.assign(side.jobs.size() * count, 0);
  for (const int task : side.order) {
    int* const here = reached.data() + task * count;
    if (const int job = side.job_of[task]; job >= 0) {
      here[chain_of_[job]] = job - first_job_[chain_of_[job]] + 1;
      std::copy_n(here, count, side.reached.begin() + static_cast<std::ptrdiff_t>(job * count));
    }
    for (int at = side.first_next[task]; at < side.first_next[task + 1]; ++at) {
      int* const behind = reached.data() + side.next[at] * count;
      for (size_t chain = 0; chain < count; ++chain) {
        behind[chain] = std::max(behind[chain], here[chain]);
      }
    }
  }
}

// Of the jobs of a chain from place `from` to before place `to` that begin at `since` or later.
Nanos SharedPath::WorkSince(const Side& side, int chain, int from, int to, Nanos since) const {
  from += first_job_[chain];
  to += first_job_[chain];
  while (from < to && side.begins[from] < since) ++from;
  return side.done[to] - side.done[from];
}

// The period of a job before which `known` of each chain are, with what else is before a later job,
// `reached` of each chain.
SharedPath::Period SharedPath::WithMore(const Side& side, const Machine& machine, Period period,
                                        const int* known, const int* reached) const {
  for (const int chain : machine.chains) {
    period.until += WorkSince(side, chain, known[chain], reached[chain], period.since);
  }
  return period;
}

// They go on from those of the job before it in its chain, or from the longest of the last one in
// another chain, or begin with it.
SharedPath::Periods SharedPath::PeriodsOf(const Side& side, const Machine& machine, int job) const {
  const int* const reached = ReachedBy(side, job);
  const Nanos begin = side.begins[job];
  Period longest{begin, begin + (side.done[job + 1] - side.done[job])};
  Period whole = longest;
  for (const int chain : machine.chains) {
    const bool own = chain == chain_of_[job];
    const int before = reached[chain] - (own ? 2 : 1);
    if (before < 0) continue;
    const int last = first_job_[chain] + before;
    const int* const known = ReachedBy(side, last);
    const Period found = WithMore(side, machine, side.periods[last].longest, known, reached);
    if (found.until >= longest.until) longest = found;
    if (own) whole = WithMore(side, machine, side.periods[last].whole, known, reached);
  }
  if (whole.until >= longest.until) longest = whole;
  return {whole, longest};
}

void SharedPath::RunSide(absl::Span<const Nanos> durations, absl::Span<const Nanos> works,
                         absl::Span<const Machine> machines, Side& side) {
  side.begin.assign(side.order.size(), Nanos(0));
  side.begins.resize(side.jobs.size());
  side.done.assign(side.jobs.size() + 1, Nanos(0));
  for (size_t job = 0; job < side.jobs.size(); ++job) {
    side.done[job + 1] = side.done[job] + works[side.jobs[job]];
  }
  side.periods.resize(side.jobs.size());
  for (const int task : side.order) {
    Nanos end = side.begin[task] + durations[task];
    const int job = side.job_of[task];
    if (const int machine = job < 0 ? -1 : machine_of_[chain_of_[job]]; machine >= 0) {
      side.begins[job] = side.begin[task];
      side.periods[job] = PeriodsOf(side, machines[machine], job);
      end = std::max(end, side.periods[job].longest.until + machines[machine].latency);
    }
    length_ = std::max(length_, end);
    for (int at = side.first_next[task]; at < side.first_next[task + 1]; ++at) {
      Nanos& begin = side.begin[side.next[at]];
      begin = std::max(begin, end);
    }
  }
}

void SharedPath::Run(absl::Span<const Nanos> durations, absl::Span<const Nanos> works,
                     absl::Span<const Machine> machines) {
  machine_of_.assign(static_cast<size_t>(chains()), -1);
  for (size_t machine = 0; machine < machines.size(); ++machine) {
    for (const int chain : machines[machine].chains) {
      machine_of_[chain] = static_cast<int>(machine);
    }
  }
  length_ = Nanos(0);
  RunSide(durations, works, machines, forwards_);
  RunSide(durations, works, machines, backwards_);
  if (machines.empty()) return;  // both sides say the same
  for (size_t task = 0; task < durations.size(); ++task) {
    length_ = std::max(length_, begin()[task] + durations[task] + tail()[task]);
  }
}

}  // namespace siphon
