#include "planner/search/made_early.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/search/recompute_draft.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kMostAhead = 4;

int Recomputed(const StageDraft& stage) {
  return static_cast<int>(
      std::count(stage.activations.begin(), stage.activations.end(), Placement::kRecompute));
}

// All stages: their last `layers` layers, at most. `recompute_run` 0: as it is.
DraftPlan WithMadeEarly(DraftPlan draft, int layers, int ahead, int recompute_run) {
  for (StageDraft& stage : draft.stages) {
    stage.layers_made_early = std::min(layers, Recomputed(stage));
    stage.actions_made_early = ahead;
    if (recompute_run > 0) stage.recompute_run = recompute_run;
  }
  return draft;
}

}  // namespace

bool MakesEarly(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(),
                     [](const StageDraft& stage) { return stage.layers_made_early > 0; });
}

std::vector<DraftPlan> ChangesOfMadeEarly(const DraftPlan& draft,
                                          const std::vector<StageId>& stages) {
  std::vector<DraftPlan> changes;
  const auto attempt = [&](const auto& change) {
    DraftPlan changed = draft;
    for (const StageId stage : stages) {
      StageDraft& made = changed.stages[stage.value];
      if (Recomputed(made) > 0) change(made);
    }
    if (changed != draft) changes.push_back(std::move(changed));
  };
  const auto set = [](StageDraft& stage, int layers) {
    stage.layers_made_early = std::clamp(layers, 0, Recomputed(stage));
  };
  attempt([&](StageDraft& stage) { set(stage, Recomputed(stage)); });
  attempt([&](StageDraft& stage) { set(stage, stage.layers_made_early + 1); });
  attempt([&](StageDraft& stage) { set(stage, stage.layers_made_early - 1); });
  attempt([&](StageDraft& stage) { set(stage, 0); });
  for (const int by : {1, -1}) {
    attempt([&](StageDraft& stage) {
      stage.actions_made_early = std::clamp(stage.actions_made_early + by, 0, kMostAhead);
    });
  }
  // Single layers fit where runs of them do not.
  attempt([&](StageDraft& stage) {
    stage.recompute_run = 1;
    set(stage, std::max(1, stage.layers_made_early));
  });
  return changes;
}

absl::StatusOr<SimulatedDraft> BestMadeEarly(DraftSimulator& simulator, const SimulatedDraft& best,
                                             EarlyStarts which) {
  absl::StatusOr<SimulatedDraft> early = absl::ResourceExhaustedError("nothing tried");
  const auto attempt = [&](const DraftPlan& start, int layers, int ahead, int run) {
    DraftPlan draft = WithMadeEarly(start, layers, ahead, run);
    if (MakesEarly(draft)) early = Better(std::move(early), simulator.Run(std::move(draft)));
  };
  const auto all = static_cast<int>(simulator.problem().profile.layers.size());
  if (which == EarlyStarts::kFew) {
    for (const int layers : {all, 1}) attempt(best.draft, layers, 0, 0);
    return early;
  }
  std::vector<DraftPlan> starts = {best.draft};
  const absl::StatusOr<SimulatedDraft> again = DraftRecompute(simulator);
  if (again.ok() && Fits(*again)) {
    starts.push_back(again->draft);
    starts.back().mapping = best.draft.mapping;
  }
  for (const DraftPlan& start : starts) {
    for (const int layers : {all, 1, 2}) {
      for (const int run : {0, 1}) {
        for (const int ahead : {0, 1}) attempt(start, layers, ahead, run);
      }
    }
  }
  return early;
}

}  // namespace siphon
