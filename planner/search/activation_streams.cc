#include "planner/search/activation_streams.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "planner/drafts/fit_moves.h"
#include "planner/drafts/move_lists.h"
#include "planner/schedule.h"
#include "planner/search/weight_streams.h"

namespace siphon {
namespace {

// How many groups may be there behind their forward, and come in before their backward.
struct Window {
  int behind = 0;
  int before = 0;
};
constexpr Window kWindows[] = {{1, 0}, {2, 1}, {4, 1}, {6, 2}};

class StreamStarts {
 public:
  StreamStarts(DraftSimulator& simulator, const SimulatedDraft& draft)
      : simulator_(simulator),
        problem_(simulator.problem()),
        draft_(draft),
        keeping_(KeepingDraft(problem_)),
        to_host_(ActivationMoves(problem_, Placement::kHostSwap, LayerOrder::kFirstLayersFirst)) {}

  // With the first workers streaming, so many of them. Errors: as FitMoves.
  absl::StatusOr<SimulatedDraft> Start(const Window& window, int workers) {
    DraftPlan start = draft_.draft;
    MoveLists again(to_host_.size());
    for (size_t stage = 0; stage < start.stages.size(); ++stage) {
      if (problem_.schedule.worker_of_stage[stage].value >= workers) continue;
      Stream(window, keeping_.stages[stage], start.stages[stage]);
    }
    for (int worker = 0; worker < workers; ++worker) {
      const std::vector<DraftMove>& moves = to_host_[worker];
      for (const DraftMove& move : moves) Apply(move, start);
      for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
        again[worker].push_back(*move);
        again[worker].back().to = Placement::kRecompute;
      }
    }
    return FitMoves(simulator_, start, again);
  }

 private:
  static void Stream(const Window& window, const StageDraft& keeping, StageDraft& stage) {
    stage.activations = keeping.activations;
    stage.first_tensors = keeping.first_tensors;
    stage.shares = keeping.shares;
    stage.recompute_run = stage.swap_run = 1;
    stage.layers_made_early = 0;
    stage.direct = DirectBackward::kDrop;
    stage.timing.forwards_to_leave = 0;
    stage.timing.actions_to_come_back = 1;
    stage.timing.groups_out_behind = window.behind;
    stage.timing.groups_in_before = window.before;
  }

  DraftSimulator& simulator_;
  const PlanningProblem& problem_;
  const SimulatedDraft& draft_;
  const DraftPlan keeping_;
  const MoveLists to_host_;
};

}  // namespace

bool StreamsActivations(const StageDraft& stage) {
  const bool all = stage.timing.groups_out_behind == SwapTiming::kAllGroups &&
                   stage.timing.groups_in_before == SwapTiming::kAllGroups;
  return !all && AnySwapped(stage.activations);
}

bool StreamsActivations(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(),
                     [](const StageDraft& stage) { return StreamsActivations(stage); });
}

absl::StatusOr<SimulatedDraft> BestActivationStreams(DraftSimulator& simulator,
                                                     const SimulatedDraft& draft) {
  StreamStarts starts(simulator, draft);
  const int all = WorkerCount(simulator.problem().schedule);
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("nothing was tried");
  for (const int workers : std::set<int>{all, all - 1, all - 2, (all + 1) / 2}) {
    if (workers <= 0) continue;
    for (const Window& window : kWindows) {
      best = Better(std::move(best), starts.Start(window, workers));
      if (!best.ok() && !absl::IsResourceExhausted(best.status())) return best;
    }
  }
  return best;
}

}  // namespace siphon
