#include "planner/bounds/facts/step_paths.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kNone = -1;
constexpr int kMeetings = 2;  // for gradients that several stages have, and for the norm

ActionKind MakerOfGradients(const ScheduleIndex& index, StageId stage, MicrobatchId microbatch) {
  const Action whole{.stage = stage, .kind = ActionKind::kBackward, .microbatch = microbatch};
  return index.Has(whole) ? ActionKind::kBackward : ActionKind::kBackwardInput;
}

// As the simulator counts the worker's own copies.
Nanos CopyTime(const TransportCosts& transport, Bytes bytes) {
  if (transport.copy_rate.value == 0) return Nanos(0);
  const Nanos down = TimeToMove(bytes, transport.copy_rate);
  return BytesMoved(transport.copy_rate, down) < bytes ? down + Nanos(1) : down;
}

}  // namespace

struct StepPaths::Builder {
  Builder(const Schedule& all_programs, const Costs& step_costs, const ScheduleIndex& places,
          StepPaths& result)
      : schedule(all_programs), costs(step_costs), index(places), paths(result) {}

  void Run() {
    int nodes = 0;
    for (const std::vector<Action>& program : schedule.programs) {
      lowered |= std::any_of(program.begin(), program.end(),
                             [](const Action& action) { return IsCommunication(action.kind); });
      paths.first_.push_back(nodes);
      nodes += static_cast<int>(program.size());
    }
    paths.first_.push_back(nodes);
    paths.durations_.resize(nodes);
    paths.ends_.resize(nodes + kMeetings);
    AddMeeting(ActionKind::kReduceGradient);
    AddMeeting(ActionKind::kReduceNorm);
    for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
      const std::vector<Action>& program = schedule.programs[worker];
      for (int place = 0; place < static_cast<int>(program.size()); ++place) {
        if (place > 0) AddEdge(NodeAt(worker, place - 1), NodeAt(worker, place), Nanos(0));
        AddAction(program[place], NodeAt(worker, place));
      }
    }
  }

  int NodeAt(int worker, int place) const { return paths.first_[worker] + place; }
  int WorkerOf(StageId stage) const { return schedule.worker_of_stage[stage.value].value; }
  void AddEdge(int from, int to, Nanos lag) { paths.edges_.push_back({from, to, lag}); }

  // All workers that have an action of the kind wait for each other's last one.
  void AddMeeting(ActionKind kind) {
    const int meeting = static_cast<int>(paths.durations_.size());
    const bool alone = WorkerCount(schedule) * schedule.replicas == 1;
    paths.durations_.push_back(alone ? Nanos(0) : costs.transport.latency * 2);
    for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
      const std::vector<Action>& program = schedule.programs[worker];
      const auto last = std::find_if(program.rbegin(), program.rend(),
                                     [kind](const Action& action) { return action.kind == kind; });
      if (last == program.rend()) continue;
      const int place = static_cast<int>(program.rend() - last) - 1;
      AddEdge(NodeAt(worker, place), meeting, Nanos(0));
      if (place + 1 < static_cast<int>(program.size())) {
        AddEdge(meeting, NodeAt(worker, place + 1), Nanos(0));
      }
    }
  }

  void AddAction(const Action& action, int node) {
    const StageCost& cost = costs.stages[action.stage.value];
    Nanos& duration = paths.durations_[node];
    switch (action.kind) {
      case ActionKind::kForward:
        duration = cost.forward;
        return AddCrossing(action, node, action.stage.value - 1, cost.input, cost.output);
      case ActionKind::kBackward:
      case ActionKind::kBackwardInput:
        duration = action.kind == ActionKind::kBackward ? WholeBackward(cost) : cost.input_backward;
        return AddCrossing(action, node, action.stage.value + 1, cost.output, cost.input);
      case ActionKind::kBackwardWeight:
        duration = cost.weight_backward;
        return;
      case ActionKind::kSendForward:
        duration = CopyTime(costs.transport, cost.output);
        return;
      case ActionKind::kSendBackward:
        duration = CopyTime(costs.transport, cost.input);
        return;
      case ActionKind::kStep:
      case ActionKind::kUpdate:
        duration = cost.step;
        if (action.kind == ActionKind::kUpdate) return;
        duration = costs.steps[action.stage.value];
        paths.ends_[node] = costs.ends[action.stage.value];
        return;
      default:
        return;
    }
  }

  // What a compute action takes from stage `source`, and passes on.
  void AddCrossing(const Action& action, int node, int source, Bytes incoming, Bytes outgoing) {
    const bool forward = action.kind == ActionKind::kForward;
    const int target = 2 * action.stage.value - source;
    if (Exists(target) && !lowered && WorkerOf(StageId(target)) != WorkerOf(action.stage)) {
      paths.durations_[node] += CopyTime(costs.transport, outgoing);
    }
    if (!Exists(source)) return;
    paths.durations_[node] += CopyTime(costs.transport, incoming);
    const int from = WorkerOf(StageId(source));
    const int to = WorkerOf(action.stage);
    const bool message = from != to;
    Action maker{.stage = StageId(source), .microbatch = action.microbatch};
    maker.kind =
        forward ? ActionKind::kForward : MakerOfGradients(index, maker.stage, maker.microbatch);
    if (message && lowered) {
      maker.kind = forward ? ActionKind::kSendForward : ActionKind::kSendBackward;
    }
    const int place = index.Find(maker);
    if (place == kNone) return;
    AddEdge(NodeAt(from, place), node,
            message ? LeastMessageTime(costs.ways[from][to], incoming) : Nanos(0));
  }

  bool Exists(int stage) const { return stage >= 0 && stage < StageCount(schedule); }

  const Schedule& schedule;
  const Costs& costs;
  const ScheduleIndex& index;
  StepPaths& paths;
  bool lowered = false;
};

absl::StatusOr<StepPaths> StepPaths::Build(const Schedule& schedule, const Costs& costs) {
  SIPHON_ASSIGN_OR_RETURN(const ScheduleIndex index, ScheduleIndex::Build(schedule));
  StepPaths paths;
  Builder(schedule, costs, index, paths).Run();
  SIPHON_RETURN_IF_ERROR(paths.Order());
  paths.MeasureSteps();
  return paths;
}

absl::Status StepPaths::Order() {
  const size_t nodes = durations_.size();
  std::stable_sort(edges_.begin(), edges_.end(),
                   [](const Edge& a, const Edge& b) { return a.from < b.from; });
  first_edge_.assign(nodes + 1, 0);
  std::vector<int> waits_for(nodes, 0);
  for (const Edge& edge : edges_) {
    ++first_edge_[edge.from + 1];
    ++waits_for[edge.to];
  }
  for (size_t node = 0; node < nodes; ++node) first_edge_[node + 1] += first_edge_[node];
  for (size_t node = 0; node < nodes; ++node) {
    if (waits_for[node] == 0) order_.push_back(static_cast<int>(node));
  }
  for (size_t next = 0; next < order_.size(); ++next) {
    const int node = order_[next];
    for (int edge = first_edge_[node]; edge < first_edge_[node + 1]; ++edge) {
      if (--waits_for[edges_[edge].to] == 0) order_.push_back(edges_[edge].to);
    }
  }
  if (order_.size() == nodes) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(nodes - order_.size(), " actions of the schedule wait for each other"));
}

void StepPaths::MeasureSteps() {
  heads_.assign(durations_.size(), Nanos(0));
  tails_.clear();
  for (size_t node = 0; node < durations_.size(); ++node) {
    tails_.push_back(std::max(durations_[node], ends_[node]));
  }
  for (const int node : order_) {
    const Nanos end = heads_[node] + durations_[node];
    step_time_ = std::max(step_time_, heads_[node] + tails_[node]);
    for (int edge = first_edge_[node]; edge < first_edge_[node + 1]; ++edge) {
      Nanos& head = heads_[edges_[edge].to];
      head = std::max(head, end + edges_[edge].lag);
    }
  }
  for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
    for (int edge = first_edge_[*node]; edge < first_edge_[*node + 1]; ++edge) {
      tails_[*node] =
          std::max(tails_[*node], durations_[*node] + edges_[edge].lag + tails_[edges_[edge].to]);
    }
  }
}

Nanos StepPaths::Work(int worker, int from, int to) const {
  Nanos work;
  for (int place = from; place < to; ++place) work += Duration({worker, place});
  return work;
}

std::vector<Nanos> StepPaths::PathsWithin(int worker, int from, int to) const {
  constexpr Nanos kNoPath(-1);
  const auto target = static_cast<int>(Node({worker, to}));
  std::vector<Nanos> longest(durations_.size(), kNoPath);
  longest[target] = Nanos(0);
  for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
    for (int edge = first_edge_[*node]; edge < first_edge_[*node + 1]; ++edge) {
      const Nanos rest = longest[edges_[edge].to];
      if (*node == target || rest == kNoPath) continue;
      longest[*node] = std::max(longest[*node], durations_[*node] + edges_[edge].lag + rest);
    }
  }
  const auto begin = longest.begin() + static_cast<std::ptrdiff_t>(Node({worker, from}));
  return {begin, begin + (to - from + 1)};
}

std::vector<bool> StepPaths::EndedBefore(PathPlace at) const {
  std::vector<bool> ended(durations_.size(), false);
  const size_t target = Node(at);
  for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
    for (int edge = first_edge_[*node]; edge < first_edge_[*node + 1]; ++edge) {
      const auto to = static_cast<size_t>(edges_[edge].to);
      if (to == target || ended[to]) ended[*node] = true;
    }
  }
  return ended;
}

std::vector<bool> StepPaths::NotBefore(PathPlace at) const {
  std::vector<bool> later(durations_.size(), false);
  later[Node(at)] = true;
  for (const int node : order_) {
    if (!later[node]) continue;
    for (int edge = first_edge_[node]; edge < first_edge_[node + 1]; ++edge) {
      later[edges_[edge].to] = true;
    }
  }
  return later;
}

std::vector<PathLink> StepPaths::LinksAmong(const std::vector<bool>& marked) const {
  std::vector<PathLink> links;
  // [node without a mark]: from the ends of marked ones to its begin.
  std::vector<std::map<size_t, Nanos>> lags(durations_.size());
  const auto pass = [&](size_t from, size_t to, Nanos lag) {
    if (marked[to]) {
      links.push_back({from, to, lag});
      return;
    }
    Nanos& longest = lags[to].try_emplace(from, lag).first->second;
    longest = std::max(longest, lag);
  };
  for (const int node : order_) {
    for (int edge = first_edge_[node]; edge < first_edge_[node + 1]; ++edge) {
      const auto to = static_cast<size_t>(edges_[edge].to);
      if (marked[node]) pass(node, to, edges_[edge].lag);
      for (const auto& [from, lag] : lags[node]) {
        pass(from, to, lag + durations_[node] + edges_[edge].lag);
      }
    }
    lags[node].clear();
  }
  return links;
}

}  // namespace siphon
