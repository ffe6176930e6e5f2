#include "planner/weight_offload/schedule_removals.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "planner/status.h"
#include "planner/weight_offload/weight_memory.h"

namespace siphon {
namespace {

constexpr int kNone = -1;

enum class Lane { kCompute, kOut, kIn };

// What the schedule knows of one weight.
struct WeightState {
  bool leaves_after_forward = false;
  bool leaves_after_backward = false;
  bool fetched_early = false;  // for its backward, before the step begins
  bool sent_late = false;      // after the next step has begun
  bool on_host = false;        // in its latest version, or on its way
  int backward = kNone;        // tasks
  int last_send = kNone;
  std::vector<int> deletion;  // what the last deletion waits for
};

std::vector<WeightState> StatesOf(const WeightOffloadProblem& problem,
                                  const std::vector<Removal>& removals, Discount discount,
                                  CuttingPoint cut) {
  std::vector<WeightState> states(problem.layers.size());
  for (const Removal& removal : removals) {
    WeightState& state = states[removal.layer];
    const bool forward = removal.gap == RemovalGap::kForwardToBackward;
    (forward ? state.leaves_after_forward : state.leaves_after_backward) = true;
  }
  for (size_t layer = states.size(); layer > 0; --layer) {
    WeightState& state = states[layer - 1];
    if (!state.leaves_after_forward) continue;
    if (cut.early > 0) {
      state.fetched_early = true;
      --cut.early;
    }
    const bool sends = discount == Discount::kIgnore || !state.leaves_after_backward;
    if (sends && cut.late > 0) {
      state.sent_late = true;
      --cut.late;
    }
  }
  return states;
}

class Scheduler {
 public:
  Scheduler(const WeightOffloadProblem& problem, const std::vector<Removal>& removals,
            Discount discount, CuttingPoint cut)
      : problem_(problem),
        discount_(discount),
        operations_(OperationMemories(problem)),
        weights_(StatesOf(problem, removals, discount, cut)),
        memory_(problem.capacity, BytesAtStart()) {
    for (const WeightState& weight : weights_) {
      scheduled_.plan.present.push_back(!AwayAtStart(weight));
    }
  }

  std::optional<ScheduledRemovals> Run() {
    SendLate();
    for (int layer = LastLayer(); layer >= 0 && fits_; --layer) Backward(layer);
    for (int layer = 0; layer <= LastLayer() && fits_; ++layer) Forward(layer);
    for (int layer = LastLayer(); layer >= 0 && fits_; --layer) {
      if (weights_[layer].fetched_early) Fetch(layer);
    }
    if (!fits_) return std::nullopt;
    scheduled_.step_time = *std::max_element(lane_end_.begin(), lane_end_.end());
    return std::move(scheduled_);
  }

 private:
  static bool AwayAtStart(const WeightState& weight) {
    return weight.leaves_after_forward && !weight.fetched_early && !weight.sent_late;
  }

  Bytes BytesAtStart() const {
    Bytes held = operations_.back().after;
    for (size_t layer = 0; layer < weights_.size(); ++layer) {
      if (!AwayAtStart(weights_[layer])) held += problem_.layers[layer].weight;
    }
    return held;
  }

  int LastLayer() const { return static_cast<int>(weights_.size()) - 1; }
  Nanos& LaneEnd(Lane lane) { return lane_end_[static_cast<size_t>(lane)]; }

  // Places a task at the end of its lane: after these tasks, and when `needs` more bytes fit.
  int Place(Lane lane, const WeightTask& task, Nanos duration, Bytes needs) {
    Nanos begin = LaneEnd(lane);
    for (const int earlier : task.after) begin = std::max(begin, ends_[earlier]);
    WeightTask placed = task;
    if (needs.value > 0) {
      const std::optional<Nanos> fit = memory_.EarliestFit(begin, needs);
      fits_ = fits_ && fit.has_value();
      if (fit && *fit > begin) {
        begin = *fit;
        for (const int end : memory_.EndsAt(begin)) placed.after.push_back(end);
      }
    }
    LaneEnd(lane) = begin + duration;
    ends_.push_back(LaneEnd(lane));
    scheduled_.plan.tasks.push_back(std::move(placed));
    return static_cast<int>(ends_.size()) - 1;
  }

  Nanos BeginOf(int task, Nanos duration) const { return ends_[task] - duration; }

  // B_k or F_k; its weight is there once `after` has ended.
  int Operation(WeightTaskKind kind, int layer, int after) {
    const bool forward = kind == WeightTaskKind::kForward;
    const size_t operation = forward ? weights_.size() + layer : weights_.size() - 1 - layer;
    const size_t before = (operation + operations_.size() - 1) % operations_.size();
    const Bytes needs = operations_[operation].during - operations_[before].after;
    const Nanos duration =
        forward ? problem_.layers[layer].forward : problem_.layers[layer].backward;
    WeightTask task{kind, layer, {}};
    if (after != kNone) task.after.push_back(after);
    const int placed = Place(Lane::kCompute, task, duration, needs);
    memory_.Take(BeginOf(placed, duration), needs);
    memory_.GiveBack(ends_[placed], operations_[operation].during - operations_[operation].after,
                     {placed});
    return placed;
  }

  int Fetch(int layer) {
    const Bytes bytes = problem_.layers[layer].weight;
    const Nanos duration = FetchTime(problem_, layer);
    const int placed = Place(Lane::kIn, {WeightTaskKind::kFetch, layer, weights_[layer].deletion},
                             duration, bytes);
    memory_.Take(BeginOf(placed, duration), bytes);
    return placed;
  }

  int Send(int layer, int after) {
    WeightTask task{WeightTaskKind::kSend, layer, {}};
    if (after != kNone) task.after.push_back(after);
    const int placed = Place(Lane::kOut, task, SendTime(problem_, layer), Bytes(0));
    weights_[layer].on_host = true;
    weights_[layer].last_send = placed;
    return placed;
  }

  void Delete(int layer, std::vector<int> after) {
    Nanos time;
    for (const int task : after) time = std::max(time, ends_[task]);
    memory_.GiveBack(time, problem_.layers[layer].weight, after);
    weights_[layer].deletion = after;
    scheduled_.plan.deletions.push_back({layer, std::move(after)});
  }

  void SendLate() {
    for (int layer = 0; layer <= LastLayer(); ++layer) {
      if (weights_[layer].sent_late) Delete(layer, {Send(layer, kNone)});
    }
  }

  void Backward(int layer) {
    WeightState& weight = weights_[layer];
    const bool fetches = weight.leaves_after_forward && !weight.fetched_early;
    const int after = fetches ? Fetch(layer) : kNone;
    weight.backward = Operation(WeightTaskKind::kBackward, layer, after);
    weight.on_host = false;
    weight.last_send = kNone;
    if (weight.leaves_after_backward) {
      SendWaiting(ends_[weight.backward]);
      Delete(layer, {Send(layer, weight.backward)});
    } else if (weight.leaves_after_forward && !weight.sent_late) {
      waiting_.push_back(layer);
    }
  }

  void Forward(int layer) {
    WeightState& weight = weights_[layer];
    const int after = weight.leaves_after_backward ? Fetch(layer) : kNone;
    const int forward = Operation(WeightTaskKind::kForward, layer, after);
    if (!weight.leaves_after_forward) return;
    SendWaiting(ends_[forward]);
    std::erase(waiting_, layer);
    if (weight.sent_late) return;
    const bool sends =
        !weight.on_host || (weight.leaves_after_backward && discount_ == Discount::kIgnore);
    if (sends) Send(layer, forward);
    Delete(layer, weight.leaves_after_backward && !sends
                      ? std::vector<int>{forward}
                      : std::vector<int>{forward, weight.last_send});
  }

  // Sends weights that wait for an idle link, as many as are through before `until`.
  void SendWaiting(Nanos until) {
    while (!waiting_.empty()) {
      const auto smallest = std::min_element(waiting_.begin(), waiting_.end(), [&](int a, int b) {
        return std::pair(problem_.layers[a].weight, a) < std::pair(problem_.layers[b].weight, b);
      });
      const int layer = *smallest;
      const int backward = weights_[layer].backward;
      const Nanos begin = std::max(LaneEnd(Lane::kOut), ends_[backward]);
      if (begin + SendTime(problem_, layer) > until) return;
      waiting_.erase(smallest);
      Send(layer, backward);
    }
  }

  const WeightOffloadProblem& problem_;
  const Discount discount_;
  const std::vector<OperationMemory> operations_;
  std::vector<WeightState> weights_;  // [layer]
  WeightMemory memory_;
  std::array<Nanos, 3> lane_end_;
  std::vector<Nanos> ends_;   // [task]
  std::vector<int> waiting_;  // layers to send before their forward, if the link is idle: WL
  ScheduledRemovals scheduled_;
  bool fits_ = true;
};

}  // namespace

std::optional<ScheduledRemovals> ScheduleRemovals(const WeightOffloadProblem& problem,
                                                  const std::vector<Removal>& removals,
                                                  Discount discount, CuttingPoint cut) {
  SIPHON_CHECK(cut.early == 0 || cut.late == 0, "a cutting point is one place of one order");
  return Scheduler(problem, removals, discount, cut).Run();
}

int NumFetchesForBackward(const std::vector<Removal>& removals) {
  return static_cast<int>(std::count_if(removals.begin(), removals.end(), [](const Removal& r) {
    return r.gap == RemovalGap::kForwardToBackward;
  }));
}

int NumSendsAfterForward(const std::vector<Removal>& removals, Discount discount) {
  if (discount == Discount::kIgnore) return NumFetchesForBackward(removals);
  return static_cast<int>(std::count_if(removals.begin(), removals.end(), [&](const Removal& r) {
    const Removal other{r.layer, RemovalGap::kBackwardToForward};
    return r.gap == RemovalGap::kForwardToBackward &&
           std::find(removals.begin(), removals.end(), other) == removals.end();
  }));
}

}  // namespace siphon
