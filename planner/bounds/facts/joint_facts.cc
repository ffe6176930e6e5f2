#include "planner/bounds/facts/joint_facts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace siphon {
namespace {

// The activations of one (stage, microbatch).
struct LivePair {
  int forward = kNoPlace;
  int backward = kNoPlace;  // B or I
  int end = kNoPlace;       // B or W
};

// What a window's microbatches reach over.
struct WindowReach {
  WindowPlace at;
  int place = 0;
  int first_forward = 0;
  int last_end = 0;
};

std::vector<LivePair> PairsOf(const std::vector<Action>& program) {
  std::map<std::pair<StageId, MicrobatchId>, LivePair> pairs;
  for (int place = 0; place < static_cast<int>(program.size()); ++place) {
    const Action& action = program[place];
    if (!IsCompute(action.kind)) continue;
    LivePair& pair = pairs[{action.stage, action.microbatch}];
    if (action.kind == ActionKind::kForward) {
      pair.forward = place;
    } else {
      if (action.kind != ActionKind::kBackwardWeight) pair.backward = place;
      pair.end = std::max(pair.end, place);
    }
  }
  std::vector<LivePair> live;
  for (const auto& [key, pair] : pairs) {
    if (pair.forward != kNoPlace && pair.backward != kNoPlace) live.push_back(pair);
  }
  return live;
}

class JointSearch {
 public:
  JointSearch(const Schedule& schedule, const StepPaths& paths,
              const std::vector<WorkerMemory>& memory)
      : schedule_(schedule), paths_(paths), memory_(memory) {
    for (const std::vector<Action>& program : schedule.programs) {
      pairs_.push_back(PairsOf(program));
    }
    for (int worker = 0; worker < static_cast<int>(memory.size()); ++worker) AddReaches(worker);
  }

  JointFacts Run() {
    JointFacts facts;
    for (size_t begin = 0; begin < reaches_.size();) {
      size_t end = begin;
      while (end < reaches_.size() && reaches_[end].at.worker == reaches_[begin].at.worker) ++end;
      AddSpans(begin, end, facts);
      begin = end;
    }
    for (int worker = 0; worker < static_cast<int>(memory_.size()); ++worker) {
      facts.steps_behind.push_back(StepsBehind(worker));
    }
    return facts;
  }

 private:
  void AddReaches(int worker) {
    const std::vector<MemoryWindow>& windows = memory_[worker].windows;
    for (int index = 0; index < static_cast<int>(windows.size()); ++index) {
      const MemoryWindow& window = windows[index];
      WindowReach reach{.at = {worker, index},
                        .place = window.place,
                        .first_forward = window.place,
                        .last_end = window.place};
      for (const LivePair& pair : pairs_[worker]) {
        if (pair.forward > window.place || pair.end < window.place) continue;
        reach.first_forward = std::min(reach.first_forward, pair.forward);
        reach.last_end = std::max(reach.last_end, pair.end);
      }
      reaches_.push_back(reach);
    }
  }

  // Whether the worker's action at the place has a mark.
  bool At(const std::vector<bool>& marks, int worker, int place) const {
    return marks[paths_.NodeOf({worker, place})];
  }

  // Of one worker, whose windows are those of reaches_ in [begin, end): from each of them to the
  // next, from the begin of the step to each, and from each to the end of the step.
  void AddSpans(size_t begin, size_t end, JointFacts& facts) const {
    const std::vector<bool> all(paths_.nodes(), true);
    std::vector<bool> later = all;  // than the window before
    for (size_t index = begin; index < end; ++index) {
      const WindowReach& window = reaches_[index];
      const PathPlace place{window.at.worker, window.place};
      std::vector<bool> ended = paths_.EndedBefore(place);
      // What begins with the window itself is in time, too.
      ended[paths_.NodeOf(place)] = true;
      if (index > begin) facts.spans.push_back(Span(window, index - begin, later, ended));
      facts.spans.push_back(Span(window, 0, all, ended));
      later = paths_.NotBefore(place);
      StepSpan rest = Span(window, 0, later, all);
      rest.from = window.at.window;
      rest.to = StepSpan::kOpen;
      facts.spans.push_back(std::move(rest));
    }
  }

  // Up to the window, from the one before it (unless `windows_before` is 0).
  StepSpan Span(const WindowReach& to, size_t windows_before, const std::vector<bool>& later,
                const std::vector<bool>& ended) const {
    StepSpan span{.worker = to.at.worker, .to = to.at.window};
    if (windows_before > 0) span.from = static_cast<int>(windows_before) - 1;
    for (const WindowReach& reach : reaches_) {
      const int worker = reach.at.worker;
      if (At(later, worker, reach.first_forward) && At(ended, worker, reach.place)) {
        span.leaving.push_back(reach.at);
      }
      if (At(later, worker, reach.place) && At(ended, worker, reach.last_end)) {
        span.returning.push_back(reach.at);
      }
    }
    return span;
  }

  std::vector<int> StepsBehind(int worker) const {
    const StepPlaces places = StepPlacesOf(schedule_.programs[worker]);
    std::vector<int> behind;
    if (places.last_compute == kNoPlace || places.first_step == kNoPlace) return behind;
    const std::vector<bool> later = paths_.NotBefore({worker, places.last_compute});
    for (int other = 0; other < static_cast<int>(memory_.size()); ++other) {
      const int step = StepPlacesOf(schedule_.programs[other]).first_step;
      if (step != kNoPlace && At(later, other, step)) behind.push_back(other);
    }
    return behind;
  }

  const Schedule& schedule_;
  const StepPaths& paths_;
  const std::vector<WorkerMemory>& memory_;
  std::vector<std::vector<LivePair>> pairs_;  // [worker]
  std::vector<WindowReach> reaches_;          // by worker and window
};

}  // namespace

StepPlaces StepPlacesOf(const std::vector<Action>& program) {
  StepPlaces places;
  for (int place = 0; place < static_cast<int>(program.size()); ++place) {
    if (program[place].kind == ActionKind::kStep) {
      places.first_step = place;
      return places;
    }
    if (IsCompute(program[place].kind)) places.last_compute = place;
  }
  return places;
}

JointFacts JointFactsOf(const Schedule& schedule, const StepPaths& paths,
                        const std::vector<WorkerMemory>& memory) {
  if (schedule.replicas > 1 || paths.nodes() > kMostJointActions) return {};
  return JointSearch(schedule, paths, memory).Run();
}

}  // namespace siphon
