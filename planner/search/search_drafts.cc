#include "planner/search/search_drafts.h"

#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/search_effort.h"
#include "planner/search/anneal_draft.h"
#include "planner/search/improve_draft.h"
#include "planner/status.h"

namespace siphon {

bool IsGood(const SimulatedDraft& draft, const SimulatedDraft& kept) {
  const Nanos step = kept.score.step;
  return Fits(draft) && draft.score.step <= step + Nanos(step.value / 1'000);
}

bool IsEnough(const PlanningProblem& problem, const SimulatedDraft& draft) {
  return problem.goal == PlanningGoal::kAnyThatFits && Fits(draft);
}

void Tell(const PlanningProblem& problem, absl::string_view doing, const SimulatedDraft& best) {
  if (problem.news) problem.news(doing, Fits(best) ? best.score.step : Nanos(0));
}

absl::StatusOr<SimulatedDraft> SearchWith(WeightSearch weights, int simulations,
                                          DraftSimulator& simulator, SimulatedDraft draft,
                                          const SimulatedDraft& kept) {
  const int most = simulator.simulations() + simulations;
  SIPHON_ASSIGN_OR_RETURN(draft, ImproveDraft(simulator, std::move(draft), most, weights));
  const int left = most - simulator.simulations();
  if (left < kFewestImprovements || IsGood(draft, kept)) return draft;
  SIPHON_ASSIGN_OR_RETURN(draft, AnnealDraft(simulator, std::move(draft), left * 3 / 4, weights));
  return ImproveDraft(simulator, std::move(draft), most, weights);
}

absl::StatusOr<SimulatedDraft> SearchFrom(absl::StatusOr<SimulatedDraft> start, int simulations,
                                          DraftSimulator& simulator, SimulatedDraft draft,
                                          const SimulatedDraft& kept) {
  if (absl::IsResourceExhausted(start.status())) return draft;
  if (!start.ok()) return start.status();
  return Better(std::move(draft), SearchWith(WeightSearch::kOnlyBack, simulations, simulator,
                                             *std::move(start), kept));
}

}  // namespace siphon
