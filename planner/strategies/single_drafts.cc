#include "planner/strategies/single_drafts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "planner/drafts/host_reach.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/drafts/search_effort.h"
#include "planner/drafts/side_by_side.h"
#include "planner/search/recompute_draft.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

constexpr SingleStrategy kKeep = {"keep", DraftKeep};
constexpr SingleStrategy kRecompute = {"recompute", DraftRecompute};
constexpr SingleStrategy kPeerSwap = {"d2d_swap", DraftPeerSwap};
constexpr SingleStrategy kToHost[] = {{"host_swap", DraftHostSwap, DraftHostSwapOrHome},
                                      {"vdnn", DraftVdnn},
                                      {"capacity_based", DraftCapacityBased},
                                      {"weight_offload", DraftWeightOffloading},
                                      {"l2l", DraftLayerToLayer}};
constexpr SingleStrategy kOffload = {"optimizer_offload", DraftOptimizerOffload};
constexpr SingleStrategy kNvmeSwap = {"nvme_swap", DraftNvmeSwap, DraftNvmeSwapOrHome};

std::vector<const SingleStrategy*> StrategiesFor(const PlanningProblem& problem,
                                                 const SimulatedDraft& kept) {
  if (Fits(kept)) return {&kKeep};
  std::vector<const SingleStrategy*> strategies = {&kRecompute};
  if (!problem.topology.links.empty()) strategies.push_back(&kPeerSwap);
  if (!ReachesHost(problem, kept.draft.mapping)) return strategies;
  for (const SingleStrategy& strategy : kToHost) strategies.push_back(&strategy);
  if (problem.host_step > Nanos(0)) strategies.push_back(&kOffload);
  if (!problem.topology.drives.empty()) strategies.push_back(&kNvmeSwap);
  return strategies;
}

// Whether a strategy's plan is its draft on the best map. Others make no drafts (mpress), or their
// drafts hang on a search of maps for lenders (d2d_swap).
bool MakesSingleDraft(absl::string_view strategy) {
  const auto is_it = [&](const SingleStrategy& single) { return single.name == strategy; };
  return std::any_of(std::begin(kToHost), std::end(kToHost), is_it) || is_it(kKeep) ||
         is_it(kRecompute) || is_it(kOffload) || is_it(kNvmeSwap);
}

}  // namespace

absl::StatusOr<std::vector<SingleDraft>> SingleDrafts(DraftSimulator& simulator,
                                                      const SimulatedDraft& kept) {
  std::vector<SingleDraft> singles;
  for (const SingleStrategy* strategy : StrategiesFor(simulator.problem(), kept)) {
    absl::StatusOr<SimulatedDraft> draft = strategy->draft(simulator);
    if (absl::IsResourceExhausted(draft.status())) continue;
    SIPHON_RETURN_IF_ERROR(draft.status());
    singles.push_back({strategy, *std::move(draft)});
  }
  return singles;
}

const SimulatedDraft* BestOf(const std::vector<SingleDraft>& singles) {
  const auto best =
      std::min_element(singles.begin(), singles.end(),
                       [](const auto& a, const auto& b) { return a.draft.score < b.draft.score; });
  return best == singles.end() ? nullptr : &best->draft;
}

std::vector<absl::StatusOr<PlannedStep>> PlansThatAreNoDrafts(PlanningProblem problem,
                                                              const SimulatedDraft* best) {
  if (best != nullptr && Fits(*best)) problem.has_step = best->score.step;
  std::vector<absl::StatusOr<PlannedStep>> plans;
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    if (strategy.name == "auto" || MakesSingleDraft(strategy.name)) continue;
    plans.push_back(strategy.plan(problem));
  }
  return plans;
}

bool TakeIfFaster(absl::StatusOr<PlannedStep> other, absl::StatusOr<PlannedStep>& best) {
  if (!other.ok()) return false;
  const bool faster = !best.ok() || other->simulated.step_time < best->simulated.step_time;
  if (faster) best = std::move(other);
  return faster;
}

absl::StatusOr<PlannedStep> BestOnOwnMaps(const PlanningProblem& problem,
                                          const SimulatedDraft& kept,
                                          const std::vector<SingleDraft>& singles,
                                          absl::StatusOr<PlannedStep> best) {
  SIPHON_ASSIGN_OR_RETURN(const Nanos least, LeastStepOfMaps(problem, kept));
  if (best.ok() && best->simulated.step_time <= least) return best;
  struct Asked {
    const SingleStrategy* strategy = nullptr;
    const SimulatedDraft* draft = nullptr;  // null: it tries more than that
  };
  std::vector<Asked> asked;
  for (const SingleStrategy* strategy : StrategiesFor(problem, kept)) {
    if (!MakesSingleDraft(strategy->name)) continue;
    if (strategy->whole != nullptr && !IsLarge(problem)) {
      asked.push_back({strategy});
      continue;
    }
    const auto single = std::find_if(singles.begin(), singles.end(),
                                     [&](const auto& one) { return one.strategy == strategy; });
    if (single == singles.end() || !Fits(single->draft)) continue;
    if (IsLarge(problem) && best.ok()) {
      SIPHON_ASSIGN_OR_RETURN(const Nanos on_maps, LeastStepOfMaps(problem, single->draft));
      if (best->simulated.step_time <= on_maps) continue;
    }
    asked.push_back({strategy, &single->draft});
  }
  const auto plan = [&](const Asked& one, std::optional<MapEffort> effort) {
    const auto& [strategy, draft] = one;
    return draft == nullptr
               ? PlanOnBestMap(problem, strategy->whole, strategy->name, effort)
               : PlanOnBestMap(problem, *draft, strategy->draft, strategy->name, effort);
  };
  std::vector<absl::StatusOr<PlannedStep>> plans(asked.size());
  RunSideBySide(problem, static_cast<int>(asked.size()),
                [&](int index) { plans[index] = plan(asked[index], std::nullopt); });
  const Asked* fastest = nullptr;  // none is faster than `best`
  for (size_t index = 0; index < asked.size(); ++index) {
    if (TakeIfFaster(std::move(plans[index]), best)) fastest = &asked[index];
  }
  if (fastest == nullptr || !best->map) return best;
  const std::optional<MapEffort> effort = MapsLeftToProve(problem, *best->map);
  if (!effort) return best;
  absl::StatusOr<PlannedStep> proven = plan(*fastest, effort);
  if (proven.ok() && proven->simulated.step_time <= best->simulated.step_time) return proven;
  return best;
}

}  // namespace siphon
