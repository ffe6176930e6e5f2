#include "planner/search/swap_draft.h"

#include <utility>
#include <vector>

#include "planner/drafts/fewest_microbatches.h"
#include "planner/drafts/fit_moves.h"
#include "planner/drafts/move_lists.h"
#include "planner/search/give_slack.h"
#include "planner/search/state_home.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::StatusOr<SimulatedDraft> FastestTiming(DraftSimulator& simulator, const DraftPlan& draft,
                                             Placement place, StateBetweenSteps between) {
  constexpr SwapTiming kTimings[] = {
      {.forwards_to_leave = 0, .actions_to_come_back = 0, .groups_ahead = 0},
      {.forwards_to_leave = 1, .actions_to_come_back = 0, .groups_ahead = 0},
      {.forwards_to_leave = 1, .actions_to_come_back = 1},
      {.forwards_to_leave = 2, .actions_to_come_back = 2}};
  constexpr SwapTiming kHomeTimings[] = {
      {.forwards_to_leave = 0, .actions_to_come_back = 0, .groups_ahead = 0},
      {.forwards_to_leave_home = 2, .actions_to_come_home = 4}};
  const PlanningProblem& problem = simulator.problem();
  const MoveLists activations = ActivationMoves(problem, place, LayerOrder::kFirstLayersFirst);
  const MoveLists state = OptimizerStateMoves(problem, place);
  const MoveLists versions = WeightVersionMoves(problem, place);
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("nothing tried");
  if (between == StateBetweenSteps::kHome) {
    const MoveLists moves = Chain(Chain(versions, state), activations);
    std::vector<int> near;
    for (const SwapTiming& timing : kHomeTimings) {
      DraftPlan timed = draft;
      for (StageDraft& stage : timed.stages) stage.timing = timing;
      KeepStateHome(problem, timed);
      best = Better(std::move(best), FitMoves(simulator, timed, moves, near));
    }
    return best;
  }
  for (const MoveLists& moves :
       {Chain(Chain(versions, state), activations), Chain(activations, Chain(versions, state))}) {
    std::vector<int> near;
    for (const SwapTiming& timing : kTimings) {
      DraftPlan timed = draft;
      for (StageDraft& stage : timed.stages) stage.timing = timing;
      best = Better(std::move(best), FitMoves(simulator, timed, moves, near));
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<SimulatedDraft> SwapToOnePlace(DraftSimulator& simulator, const DraftPlan& draft,
                                              Placement place, StateBetweenSteps between) {
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft best, FastestTiming(simulator, draft, place, between));
  if (simulator.problem().lending != LendingRule::kPeaks) return best;
  const Nanos step = best.score.step;
  return GiveSlack(simulator, std::move(best), step);
}

absl::StatusOr<SimulatedDraft> FewestSwapped(DraftSimulator& simulator,
                                             absl::StatusOr<SimulatedDraft> start,
                                             Placement place) {
  return FewestMicrobatches(
      simulator, std::move(start),
      ActivationMoves(simulator.problem(), place, LayerOrder::kFirstLayersFirst));
}

}  // namespace siphon
