#include "planner/bounds/facts/full_moments.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "planner/bounds/facts/joint_facts.h"

namespace siphon {
namespace {

// The activations of one microbatch of a stage.
struct StagePair {
  int stage = 0;  // of the worker
  int forward = kNoPlace;
  int backward = kNoPlace;  // B or I
  int weights = kNoPlace;   // W
};

std::vector<StagePair> StagePairsOf(const std::vector<Action>& program,
                                    const std::vector<StageId>& stages) {
  std::map<std::pair<StageId, MicrobatchId>, StagePair> pairs;
  for (int place = 0; place < static_cast<int>(program.size()); ++place) {
    const Action& action = program[place];
    if (!IsCompute(action.kind)) continue;
    StagePair& pair = pairs[{action.stage, action.microbatch}];
    pair.stage =
        static_cast<int>(std::find(stages.begin(), stages.end(), action.stage) - stages.begin());
    (action.kind == ActionKind::kForward          ? pair.forward
     : action.kind == ActionKind::kBackwardWeight ? pair.weights
                                                  : pair.backward) = place;
  }
  std::vector<StagePair> whole;
  for (const auto& [key, pair] : pairs) {
    if (pair.forward != kNoPlace && pair.backward != kNoPlace) whole.push_back(pair);
  }
  return whole;
}

class MomentSearch {
 public:
  MomentSearch(const Schedule& schedule, const StepPaths& paths,
               const std::vector<WorkerMemory>& memory)
      : paths_(paths), memory_(memory) {
    for (size_t worker = 0; worker < memory.size(); ++worker) {
      pairs_.push_back(StagePairsOf(schedule.programs[worker], memory[worker].stages));
      std::vector<Bytes>& stash = stash_.emplace_back(memory[worker].stages.size());
      for (const LayerKind& kind : memory[worker].layers) {
        stash[PlaceOf(memory[worker], kind.stage)] += kind.stash * kind.layers;
      }
    }
  }

  std::vector<FullMoment> Run() const {
    std::vector<FullMoment> moments;
    for (int worker = 0; worker < static_cast<int>(memory_.size()); ++worker) {
      const std::vector<MemoryWindow>& windows = memory_[worker].windows;
      std::optional<FullMoment> fullest;
      Bytes most;
      for (int index = 0; index < static_cast<int>(windows.size()); ++index) {
        FullMoment moment = MomentOf(worker, index);
        Bytes live = windows[index].stash + windows[index].queued;
        for (const LiveThen& other : moment.others) live += other.stash + other.queued;
        if (fullest.has_value() && live <= most) continue;
        most = live;
        fullest = std::move(moment);
      }
      if (fullest.has_value() && !fullest->others.empty()) moments.push_back(*std::move(fullest));
    }
    return moments;
  }

 private:
  FullMoment MomentOf(int worker, int index) const {
    const PathPlace place{worker, memory_[worker].windows[index].place};
    const std::vector<bool> ended = paths_.EndedBefore(place);
    const std::vector<bool> later = paths_.NotBefore(place);
    FullMoment moment{.worker = worker, .window = index};
    for (int other = 0; other < static_cast<int>(memory_.size()); ++other) {
      if (other == worker) continue;
      LiveThen then = LiveOn(other, ended, later);
      if (then.stash + then.queued > Bytes(0)) moment.others.push_back(std::move(then));
    }
    return moment;
  }

  LiveThen LiveOn(int worker, const std::vector<bool>& ended,
                  const std::vector<bool>& later) const {
    LiveThen then{.worker = worker, .live = std::vector<int>(memory_[worker].stages.size(), 0)};
    int first_forward = kNoPlace;
    int last_backward = kNoPlace;
    for (const StagePair& pair : pairs_[worker]) {
      const bool kept = pair.weights > pair.backward &&
                        ended[paths_.NodeOf({worker, pair.backward})] &&
                        later[paths_.NodeOf({worker, pair.weights})];
      if (kept) then.queued += memory_[worker].kept[pair.stage];
      const bool live = ended[paths_.NodeOf({worker, pair.forward})] &&
                        later[paths_.NodeOf({worker, pair.backward})];
      if (!live) continue;
      ++then.live[pair.stage];
      then.stash += stash_[worker][pair.stage];
      if (first_forward == kNoPlace || pair.forward < first_forward) first_forward = pair.forward;
      last_backward = std::max(last_backward, pair.backward);
    }
    if (last_backward == kNoPlace) return then;
    then.head = paths_.Head({worker, first_forward}) + paths_.Duration({worker, first_forward});
    const Nanos tail = paths_.Tail({worker, last_backward});
    int first_later = last_backward;
    while (first_later > 0 && later[paths_.NodeOf({worker, first_later - 1})]) --first_later;
    then.rest = paths_.Work(worker, first_later, last_backward) + tail;
    then.tail = tail - paths_.Duration({worker, last_backward});
    return then;
  }

  const StepPaths& paths_;
  const std::vector<WorkerMemory>& memory_;
  std::vector<std::vector<StagePair>> pairs_;  // [worker]
  std::vector<std::vector<Bytes>> stash_;      // [worker][stage of it], of one microbatch
};

}  // namespace

std::vector<FullMoment> FullMomentsOf(const Schedule& schedule, const StepPaths& paths,
                                      const std::vector<WorkerMemory>& memory) {
  if (schedule.replicas > 1 || paths.nodes() > kMostJointActions) return {};
  return MomentSearch(schedule, paths, memory).Run();
}

}  // namespace siphon
