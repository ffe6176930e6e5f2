#include "planner/strategies/single_drafts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planner/status.h"
#include "planner/strategies/map_draft.h"
#include "planner/strategies/search_effort.h"
#include "planner/strategies/start_drafts.h"
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

bool MakesSingleDraft(absl::string_view strategy) {
  const auto is_it = [&](const SingleStrategy& single) { return single.name == strategy; };
  return std::any_of(std::begin(kToHost), std::end(kToHost), is_it) || is_it(kKeep) ||
         is_it(kRecompute) || is_it(kOffload) || is_it(kNvmeSwap);
}

void TakeIfFaster(absl::StatusOr<PlannedStep> other, absl::StatusOr<PlannedStep>& best) {
  if (!other.ok()) return;
  const bool faster = !best.ok() || other->simulated.step_time < best->simulated.step_time;
  if (faster) best = std::move(other);
}

absl::StatusOr<PlannedStep> BestOnOwnMaps(const PlanningProblem& problem,
                                          const SimulatedDraft& kept,
                                          const std::vector<SingleDraft>& singles,
                                          absl::StatusOr<PlannedStep> best) {
  SIPHON_ASSIGN_OR_RETURN(const Nanos least, LeastStepOfMaps(problem, kept));
  for (const SingleStrategy* strategy : StrategiesFor(problem, kept)) {
    if (best.ok() && best->simulated.step_time <= least) break;
    if (!MakesSingleDraft(strategy->name)) continue;
    const bool tries_more = strategy->whole != nullptr && !IsLarge(problem);
    const auto single = std::find_if(singles.begin(), singles.end(),
                                     [&](const auto& one) { return one.strategy == strategy; });
    if (!tries_more && (single == singles.end() || !Fits(single->draft))) continue;
    if (IsLarge(problem) && best.ok()) {
      SIPHON_ASSIGN_OR_RETURN(const Nanos on_maps, LeastStepOfMaps(problem, single->draft));
      if (best->simulated.step_time <= on_maps) continue;
    }
    TakeIfFaster(tries_more
                     ? PlanOnBestMap(problem, strategy->whole, strategy->name)
                     : PlanOnBestMap(problem, single->draft, strategy->draft, strategy->name),
                 best);
  }
  return best;
}

}  // namespace siphon
