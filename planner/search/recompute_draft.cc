#include "planner/search/recompute_draft.h"

#include <utility>

#include "planner/drafts/fewest_microbatches.h"
#include "planner/drafts/fit_moves.h"
#include "planner/drafts/move_lists.h"

namespace siphon {
namespace {

// Layers that are computed again together keep one input for all; one at a time, the backward has
// room for one only. 0: all of a stage.
constexpr int kRuns[] = {1, 4, 0};

}  // namespace

absl::StatusOr<SimulatedDraft> DraftRecompute(DraftSimulator& simulator) {
  const PlanningProblem& problem = simulator.problem();
  const MoveLists moves =
      ActivationMoves(problem, Placement::kRecompute, LayerOrder::kLastLayersFirst);
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("nothing tried");
  for (const DirectBackward direct : {DirectBackward::kLeave, DirectBackward::kDrop}) {
    for (const int run : kRuns) {
      DraftPlan draft = KeepingDraft(problem);
      for (StageDraft& stage : draft.stages) {
        stage.recompute_run = run;
        stage.direct = direct;
      }
      best = Better(std::move(best), FitMoves(simulator, draft, moves));
    }
    if (best.ok() && Fits(*best)) break;
  }
  return FewestMicrobatches(simulator, std::move(best), moves);
}

}  // namespace siphon
