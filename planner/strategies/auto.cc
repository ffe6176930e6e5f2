#include <utility>

#include "planner/status.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/improve_draft.h"
#include "planner/strategies/map_draft.h"
#include "planner/strategies/second_choices.h"
#include "planner/strategies/start_drafts.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

// Each simulates one step; so many more than the starts took.
constexpr int kMostImprovements = 150;

// The best of the strategies with one kind of place each.
absl::StatusOr<SimulatedDraft> BestSingle(DraftSimulator& simulator, const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  absl::StatusOr<SimulatedDraft> best = DraftRecompute(simulator);
  if (!problem.topology.links.empty()) {
    best = Better(std::move(best), DraftPeerSwap(simulator));
  }
  if (!ReachesHost(problem, kept.draft.mapping)) return best;
  best = Better(std::move(best), DraftHostSwap(simulator));
  if (problem.host_step > Nanos(0)) {
    best = Better(std::move(best), DraftOptimizerOffload(simulator));
  }
  if (!problem.topology.drives.empty()) {
    best = Better(std::move(best), DraftNvmeSwap(simulator));
  }
  return best;
}

}  // namespace

absl::StatusOr<PlannedStep> PlanAuto(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft kept, DraftKeep(simulator));
  if (Fits(kept)) return PlannedOf(problem, std::move(kept), "auto");
  SIPHON_ASSIGN_OR_RETURN(DraftPlan mapped, MapToLenders(problem, kept));
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft placed, simulator.Run(std::move(mapped)));
  absl::StatusOr<SimulatedDraft> best = BestSingle(simulator, kept);
  best = Better(std::move(best), BestStart(simulator, placed));
  SIPHON_RETURN_IF_ERROR(best.status());
  SIPHON_ASSIGN_OR_RETURN(
      SimulatedDraft improved,
      ImproveDraft(simulator, *std::move(best), simulator.simulations() + kMostImprovements));
  SIPHON_RETURN_IF_ERROR(AddSecondChoices(simulator, improved));
  return PlannedOf(problem, std::move(improved), "auto");
}

}  // namespace siphon
