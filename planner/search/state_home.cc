#include "planner/search/state_home.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/search/draft_changes.h"
#include "planner/search/start_drafts.h"
#include "planner/search/swap_draft.h"
#include "planner/status.h"

namespace siphon {
namespace {

// How much of what the worker has between steps is beyond its capacity, if nothing were away.
Bytes TooMuchBetweenSteps(const PlanningProblem& problem, int worker) {
  if (problem.capacity.empty() || problem.capacity[worker] == Bytes(0)) return Bytes(0);
  Bytes all = problem.held.empty() ? Bytes(0) : Total(problem.held[worker]);
  for (const StageId stage : StagesOf(problem.schedule, WorkerId(worker))) {
    const StageRange& layers = problem.partition.stages[stage.value];
    for (int index = layers.begin; index < layers.end; ++index) {
      const LayerProfile& layer = problem.profile.layers[index];
      all += layer.parameters + layer.gradients + layer.optimizer_state;
    }
  }
  return std::max(Bytes(0), all - problem.capacity[worker]);
}

// How long copies of what is home may take, beside the other copies of a start.
struct HomeTiming {
  int forwards;
  int actions;
};
constexpr HomeTiming kHomeTimings[] = {{1, 1}, {2, 4}, {4, 8}};

}  // namespace

void KeepStateHome(const PlanningProblem& problem, DraftPlan& draft) {
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    Bytes too_much = TooMuchBetweenSteps(problem, worker);
    for (const StageId stage : StagesOf(problem.schedule, WorkerId(worker))) {
      const StageRange& layers = problem.partition.stages[stage.value];
      int& away = draft.stages[stage.value].timing.groups_away_between_steps;
      away = 0;
      for (int index = layers.begin; index < layers.end && too_much > Bytes(0); ++index) {
        const Bytes state = problem.profile.layers[index].optimizer_state;
        if (state == Bytes(0)) continue;
        too_much -= state;
        ++away;
      }
    }
  }
}

int SwappedState(const StageDraft& stage) {
  return static_cast<int>(
      std::count_if(stage.optimizer_state.begin(), stage.optimizer_state.end(), IsSwap));
}

int StateAwayBetweenSteps(const StageDraft& stage) {
  return std::min(SwappedState(stage), stage.timing.groups_away_between_steps);
}

bool HasStateHome(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(), [](const StageDraft& stage) {
    return stage.timing.groups_away_between_steps != SwapTiming::kAllGroups;
  });
}

absl::StatusOr<SimulatedDraft> BestSwapWithStateHome(DraftSimulator& simulator,
                                                     const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("nothing tried");
  for (const Placement place : PossiblePlacements(problem, kept.draft.mapping)) {
    if (!IsSwap(place)) continue;
    DraftPlan draft = kept.draft;
    if (place == Placement::kPeerSwap) {
      SIPHON_ASSIGN_OR_RETURN(LenderMap mapped, MapToLenders(problem, kept));
      draft = std::move(mapped.draft);
    }
    best =
        Better(std::move(best), SwapToOnePlace(simulator, draft, place, StateBetweenSteps::kHome));
  }
  return best;
}

absl::StatusOr<SimulatedDraft> SpreadStateHome(DraftSimulator& simulator, const DraftPlan& draft) {
  absl::StatusOr<SimulatedDraft> home = absl::ResourceExhaustedError("nothing tried");
  for (const HomeTiming& timing : kHomeTimings) {
    DraftPlan spread = draft;
    KeepStateHome(simulator.problem(), spread);
    for (StageDraft& stage : spread.stages) {
      stage.timing.forwards_to_leave_home = timing.forwards;
      stage.timing.actions_to_come_home = timing.actions;
    }
    home = Better(std::move(home), simulator.Run(std::move(spread)));
  }
  return home;
}

absl::StatusOr<SimulatedDraft> BestWithStateHome(DraftSimulator& simulator,
                                                 const SimulatedDraft& best,
                                                 const SimulatedDraft& kept) {
  absl::StatusOr<SimulatedDraft> home = BestSwapWithStateHome(simulator, kept);
  home = Better(std::move(home), SpreadStateHome(simulator, best.draft));
  DraftPlan there = kept.draft;
  there.mapping = best.draft.mapping;
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft placed, simulator.Run(std::move(there)));
  return Better(std::move(home), BestStart(simulator, placed, StateBetweenSteps::kHome));
}

}  // namespace siphon
