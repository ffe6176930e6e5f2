#include "tests/planner/weight_offload/exhaustive_step.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace siphon {
namespace {

enum Place : int { kAbsent, kChanged, kClean };  // clean: the host has the same version

struct State {
  int operation = 0;  // that runs, or runs next
  int running = 0;    // time units left of it; 0: it has not begun
  std::array<int, 4> places{};
  int fetched = -1;  // layer
  int fetching = 0;  // time units left
  int sent = -1;
  int sending = 0;

  uint64_t Key() const {
    uint64_t key = 0;
    for (const int part : {operation, running, fetched + 1, fetching, sent + 1, sending}) {
      key = key * 16 + static_cast<uint64_t>(part);
    }
    for (const int place : places) key = key * 4 + static_cast<uint64_t>(place);
    return key;
  }
};

class Search {
 public:
  explicit Search(const WeightOffloadProblem& problem)
      : problem_(problem), memories_(OperationMemories(problem)), count_(OperationCount(problem)) {}

  std::optional<int> From(const std::array<int, 4>& places, int limit) {
    State start;
    start.places = places;
    goal_ = start;
    goal_.operation = count_;
    found_ = false;
    std::vector<State> now;
    absl::flat_hash_set<uint64_t> seen;  // sooner is never worse
    Reach(start, &now, &seen);
    for (int time = 0; time < limit; ++time) {
      if (found_) return time;
      std::vector<State> next;
      for (const State& state : now) {
        if (time + TimeLeft(state) < limit) Reach(AfterOneUnit(state), &next, &seen);
      }
      now = std::move(next);
    }
    return std::nullopt;
  }

 private:
  // Adds the state and all that follow from it in no time.
  void Reach(const State& state, std::vector<State>* states, absl::flat_hash_set<uint64_t>* seen) {
    if (!seen->insert(state.Key()).second) return;
    if (state.Key() == goal_.Key()) found_ = true;
    states->push_back(state);
    for (size_t layer = 0; layer < problem_.layers.size(); ++layer) {
      const int index = static_cast<int>(layer);
      Delete(state, index, states, seen);
      BeginFetch(state, index, states, seen);
      BeginSend(state, index, states, seen);
    }
    BeginOperation(state, states, seen);
  }

  bool Runs(const State& state, int layer) const {
    return state.running > 0 && LayerOf(problem_, state.operation) == layer;
  }

  void Delete(State state, int layer, std::vector<State>* states,
              absl::flat_hash_set<uint64_t>* seen) {
    if (state.places[layer] != kClean || Runs(state, layer) || state.sent == layer) return;
    state.places[layer] = kAbsent;
    Reach(state, states, seen);
  }

  void BeginFetch(State state, int layer, std::vector<State>* states,
                  absl::flat_hash_set<uint64_t>* seen) {
    if (state.fetched >= 0 || state.places[layer] != kAbsent) return;
    state.fetched = layer;
    state.fetching = static_cast<int>(FetchTime(problem_, layer).value);
    if (Fits(state)) Reach(state, states, seen);
  }

  void BeginSend(State state, int layer, std::vector<State>* states,
                 absl::flat_hash_set<uint64_t>* seen) {
    if (state.sent >= 0 || state.places[layer] != kChanged) return;
    if (Runs(state, layer) && PassOf(problem_, state.operation) == Pass::kBackward) return;
    state.sent = layer;
    state.sending = static_cast<int>(SendTime(problem_, layer).value);
    Reach(state, states, seen);
  }

  void BeginOperation(State state, std::vector<State>* states,
                      absl::flat_hash_set<uint64_t>* seen) {
    if (state.running > 0 || state.operation == count_) return;
    const int layer = LayerOf(problem_, state.operation);
    if (state.places[layer] == kAbsent) return;
    if (state.sent == layer && PassOf(problem_, state.operation) == Pass::kBackward) return;
    state.running = static_cast<int>(DurationOf(problem_, state.operation).value);
    if (Fits(state)) Reach(state, states, seen);
  }

  bool Fits(const State& state) const {
    const int before = (state.operation + count_ - 1) % count_;
    Bytes held = state.running > 0 ? memories_[state.operation].during : memories_[before].after;
    for (size_t layer = 0; layer < problem_.layers.size(); ++layer) {
      const bool arrives = state.fetched == static_cast<int>(layer);
      if (state.places[layer] != kAbsent || arrives) held += problem_.layers[layer].weight;
    }
    return held <= problem_.capacity;
  }

  // Of the operations, which no plan can make shorter.
  int TimeLeft(const State& state) const {
    int left = state.running;
    for (int next = state.operation + (state.running > 0 ? 1 : 0); next < count_; ++next) {
      left += static_cast<int>(DurationOf(problem_, next).value);
    }
    return left;
  }

  State AfterOneUnit(State state) const {
    if (state.sent >= 0 && --state.sending == 0) {
      state.places[state.sent] = kClean;
      state.sent = -1;
    }
    if (state.fetched >= 0 && --state.fetching == 0) {
      state.places[state.fetched] = kClean;
      state.fetched = -1;
    }
    if (state.running > 0 && --state.running == 0) {
      if (PassOf(problem_, state.operation) == Pass::kBackward) {
        state.places[LayerOf(problem_, state.operation)] = kChanged;
      }
      ++state.operation;
    }
    return state;
  }

  const WeightOffloadProblem& problem_;
  const std::vector<OperationMemory> memories_;
  const int count_;
  State goal_;
  bool found_ = false;
};

}  // namespace

std::optional<Nanos> ShortestStepBySearch(const WeightOffloadProblem& problem, Nanos limit) {
  Search search(problem);
  std::optional<Nanos> shortest;
  int places = 1;
  for (size_t layer = 0; layer < problem.layers.size(); ++layer) places *= 3;
  for (int code = 0; code < places; ++code) {
    std::array<int, 4> start{};
    int rest = code;
    for (size_t layer = 0; layer < problem.layers.size(); ++layer, rest /= 3) {
      start[layer] = rest % 3;
    }
    const Nanos below = shortest.value_or(limit);
    const std::optional<int> time = search.From(start, static_cast<int>(below.value));
    if (time) shortest = Nanos(*time);
  }
  return shortest;
}

}  // namespace siphon
