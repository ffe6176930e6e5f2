#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/string_view.h"
#include "planner/status.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/improve_draft.h"
#include "planner/strategies/map_draft.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/second_choices.h"
#include "planner/strategies/start_drafts.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

// Each simulates one step; so many more than the starts took.
constexpr int kMostImprovements = 200;
// Each simulates up to two.
constexpr int64_t kMostMaps = 24;

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

// The best of all drafts, or the one that comes closest to fitting.
absl::StatusOr<SimulatedDraft> BestDraft(DraftSimulator& simulator) {
  const PlanningProblem& problem = simulator.problem();
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft kept, DraftKeep(simulator));
  if (Fits(kept)) return kept;
  SIPHON_ASSIGN_OR_RETURN(DraftPlan mapped, MapToLenders(problem, kept));
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft placed, simulator.Run(std::move(mapped)));
  absl::StatusOr<SimulatedDraft> single = BestSingle(simulator, kept);
  return Better(std::move(single), BestStart(simulator, placed));
}

// Strategies that make no drafts, and so cannot be improved here.
bool MakesDrafts(absl::string_view strategy) {
  constexpr absl::string_view kNames[] = {"keep",      "recompute",         "host_swap", "d2d_swap",
                                          "nvme_swap", "optimizer_offload", "auto"};
  return std::find(std::begin(kNames), std::end(kNames), strategy) != std::end(kNames);
}

}  // namespace

absl::StatusOr<PlannedStep> PlanAuto(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft draft, BestDraft(simulator));
  SIPHON_ASSIGN_OR_RETURN(MappedDraft mapped,
                          MapByStepTime(simulator, std::move(draft), kMostMaps));
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft improved,
                          ImproveDraft(simulator, std::move(mapped.draft),
                                       simulator.simulations() + kMostImprovements));
  SIPHON_RETURN_IF_ERROR(AddSecondChoices(simulator, improved));
  absl::StatusOr<PlannedStep> best = PlannedOf(problem, std::move(improved), "auto");
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    if (MakesDrafts(strategy.name)) continue;
    absl::StatusOr<PlannedStep> other = strategy.plan(problem);
    if (!other.ok()) continue;
    const bool better = !best.ok() || other->simulated.step_time < best->simulated.step_time;
    if (better) best = std::move(other);
  }
  return best;
}

}  // namespace siphon
