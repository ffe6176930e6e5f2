#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/string_view.h"
#include "planner/status.h"
#include "planner/strategies/anneal_draft.h"
#include "planner/strategies/bring_home.h"
#include "planner/strategies/first_tensors_search.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/give_slack.h"
#include "planner/strategies/improve_draft.h"
#include "planner/strategies/made_early.h"
#include "planner/strategies/map_draft.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/move_lists.h"
#include "planner/strategies/search_effort.h"
#include "planner/strategies/second_choices.h"
#include "planner/strategies/share_search.h"
#include "planner/strategies/spread_steps.h"
#include "planner/strategies/start_drafts.h"
#include "planner/strategies/state_home.h"
#include "planner/strategies/strategies.h"
#include "planner/strategies/stream_steps.h"
#include "planner/strategies/tidy_draft.h"
#include "planner/strategies/time_state_home.h"
#include "planner/strategies/uniform_starts.h"
#include "planner/strategies/weight_starts.h"

namespace siphon {
namespace {

// Each simulates up to two.
constexpr int64_t kMostMaps = 12;
// So many at most once more for weights; of large problems a quarter.
constexpr int kMostForWeights = 500;
// So many at most from a uniform start, whose step is at most 23/20 of what was found.
constexpr int kMostFromUniform = 900;
// So many at most once more with optimizer state at home between steps; of large problems a
// quarter.
constexpr int kMostWithStateHome = 900;
// So many at most with optimizer steps spread over host and links; of large problems none.
constexpr int kMostForSteps = 600;
// So many at most for tensors within layers; of large problems a half.
constexpr int kMostForTensors = 600;
// So many at most with layers made early; of large problems an eighth.
constexpr int kMostMadeEarly = 900;
// So many at most for shares of microbatches; of large problems none.
constexpr int kMostForShares = 900;
constexpr std::pair<int64_t, int64_t> kNearUniform = {20, 23};

// The best of the strategies with one kind of place each.
absl::StatusOr<SimulatedDraft> BestSingle(DraftSimulator& simulator, const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  absl::StatusOr<SimulatedDraft> best = DraftRecompute(simulator);
  if (!problem.topology.links.empty()) {
    best = Better(std::move(best), DraftPeerSwap(simulator));
  }
  if (!ReachesHost(problem, kept.draft.mapping)) return best;
  for (const auto& draft :
       {DraftHostSwap, DraftVdnn, DraftCapacityBased, DraftWeightOffloading, DraftLayerToLayer}) {
    best = Better(std::move(best), draft(simulator));
  }
  if (problem.host_step > Nanos(0)) {
    best = Better(std::move(best), DraftOptimizerOffload(simulator));
  }
  if (!problem.topology.drives.empty()) {
    best = Better(std::move(best), DraftNvmeSwap(simulator));
  }
  return best;
}

// The best of all drafts, or the one that comes closest to fitting.
absl::StatusOr<SimulatedDraft> BestDraft(DraftSimulator& simulator, const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (Fits(kept)) return kept;
  SIPHON_ASSIGN_OR_RETURN(LenderMap mapped, MapToLenders(problem, kept));
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft placed, simulator.Run(std::move(mapped.draft)));
  absl::StatusOr<SimulatedDraft> single = BestSingle(simulator, kept);
  return Better(std::move(single), BestStart(simulator, placed));
}

// Saving memory costs less than a thousandth of a step that keeps everything.
bool IsGood(const SimulatedDraft& draft, const SimulatedDraft& kept) {
  const Nanos step = kept.score.step;
  return Fits(draft) && draft.score.step <= step + Nanos(step.value / 1'000);
}

// Single changes first, as long as they help; then random ones, and once more single ones. Where
// a draft is good before, there is no more.
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

// The better of `draft` and of what is found from `start`, so that nothing is lost to trying; where
// there was no room for a start, `draft`.
absl::StatusOr<SimulatedDraft> SearchFrom(absl::StatusOr<SimulatedDraft> start, int simulations,
                                          DraftSimulator& simulator, SimulatedDraft draft,
                                          const SimulatedDraft& kept) {
  if (absl::IsResourceExhausted(start.status())) return draft;
  if (!start.ok()) return start.status();
  return Better(std::move(draft), SearchWith(WeightSearch::kOnlyBack, simulations, simulator,
                                             *std::move(start), kept));
}

bool SendsWeights(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(), [](const StageDraft& stage) {
    return std::any_of(stage.parameters.begin(), stage.parameters.end(), IsSwap) ||
           std::any_of(stage.gradients.begin(), stage.gradients.end(), IsSwap);
  });
}

// Where the start keeps weights, first without sending them away: then nothing is lost to trying.
absl::StatusOr<SimulatedDraft> Search(DraftSimulator& simulator, SimulatedDraft draft,
                                      const SimulatedDraft& kept) {
  const int simulations = ImprovementsOf(simulator.problem());
  if (!SendsWeights(draft.draft)) {
    SIPHON_ASSIGN_OR_RETURN(
        draft, SearchWith(WeightSearch::kOnlyBack, simulations, simulator, std::move(draft), kept));
    if (IsGood(draft, kept)) return draft;
    SIPHON_ASSIGN_OR_RETURN(draft, BestWithWeightsAway(simulator, std::move(draft)));
  }
  const int again = MoreOf(simulator.problem(), kMostForWeights, 4);
  SIPHON_ASSIGN_OR_RETURN(
      draft, SearchWith(WeightSearch::kAnywhere, again, simulator, std::move(draft), kept));
  return IsLarge(simulator.problem()) ? std::move(draft) : TidyDraft(simulator, std::move(draft));
}

// Whether any worker steps at its end, with optimizer state that could be away until then.
bool MovesState(const PlanningProblem& problem) {
  const MoveLists moves = OptimizerStateMoves(problem, Placement::kHostSwap);
  return std::any_of(moves.begin(), moves.end(),
                     [](const std::vector<DraftMove>& worker) { return !worker.empty(); });
}

// What lenders have moment by moment, where what they have at their fullest was too little; from
// the draft that was found without, so that this is never worse.
absl::StatusOr<SimulatedDraft> SearchOverTime(DraftSimulator& simulator, SimulatedDraft draft,
                                              const SimulatedDraft& kept) {
  if (!simulator.MayLendOverTime() || simulator.problem().topology.links.empty()) return draft;
  if (IsGood(draft, kept)) return draft;
  simulator.LendBy(LendingRule::kOverTime);
  const bool fits = Fits(draft);
  SIPHON_ASSIGN_OR_RETURN(draft, Better(std::move(draft), DraftPeerSwap(simulator)));
  if (!fits) {
    SIPHON_ASSIGN_OR_RETURN(draft, Better(std::move(draft), BestStart(simulator, kept)));
  }
  const int most = simulator.simulations() + ImprovementsOf(simulator.problem());
  return ImproveDraft(simulator, std::move(draft), most, WeightSearch::kOnlyBack);
}

// Once more from a start in which all stages do the same, where that is nearly as good before any
// search: another start often leads elsewhere. Large problems have no time for it.
absl::StatusOr<SimulatedDraft> SearchFromUniform(DraftSimulator& simulator, SimulatedDraft draft,
                                                 const SimulatedDraft& kept) {
  if (IsLarge(simulator.problem()) || IsGood(draft, kept)) return draft;
  DraftPlan there = kept.draft;
  there.mapping = draft.draft.mapping;
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft placed, simulator.Run(std::move(there)));
  absl::StatusOr<SimulatedDraft> start = BestUniformStart(simulator, placed);
  if (absl::IsResourceExhausted(start.status())) return draft;
  if (!start.ok()) return start.status();
  if (!Fits(*start)) return draft;
  const bool is_near =
      start->score.step.value / kNearUniform.second <= draft.score.step.value / kNearUniform.first;
  if (Fits(draft) && !is_near) return draft;
  return SearchFrom(std::move(start), MoreOf(simulator.problem(), kMostFromUniform, 1), simulator,
                    std::move(draft), kept);
}

// Where all that came to nothing.
absl::StatusOr<SimulatedDraft> SearchFromBlocks(DraftSimulator& simulator, SimulatedDraft draft,
                                                const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (Fits(draft) || !ReachesHost(problem, draft.draft.mapping)) return draft;
  absl::StatusOr<SimulatedDraft> start = FitWeightBlocks(simulator, draft.draft.mapping);
  if (absl::IsResourceExhausted(start.status())) return draft;
  if (!start.ok()) return start.status();
  if (!Fits(*start)) return Better(std::move(draft), *std::move(start));
  return SearchWith(WeightSearch::kAnywhere, std::min(ImprovementsOf(problem), kMostForWeights),
                    simulator, *std::move(start), kept);
}

// Once more with some of the optimizer steps on the host, as searches by single changes do not find
// them.
absl::StatusOr<SimulatedDraft> SearchSpreadSteps(DraftSimulator& simulator, SimulatedDraft draft,
                                                 const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (Fits(kept) || IsGood(draft, kept) || !MovesState(problem)) return draft;
  if (IsLarge(problem)) {
    absl::StatusOr<SimulatedDraft> spread = BestSpreadSteps(simulator, draft);
    if (absl::IsResourceExhausted(spread.status())) return draft;
    return Better(std::move(draft), std::move(spread));
  }
  for (const auto& starts : {BestSpreadSteps, BestOfTheRestOnHost}) {
    absl::StatusOr<SimulatedDraft> start = starts(simulator, draft);
    SIPHON_ASSIGN_OR_RETURN(draft, SearchFrom(std::move(start), MoreOf(problem, kMostForSteps, 1),
                                              simulator, std::move(draft), kept));
  }
  return draft;
}

// Once more with optimizer state at home between steps, which all drafts until then have away, if
// anywhere: so that nothing is lost to trying.
absl::StatusOr<SimulatedDraft> SearchWithStateHome(DraftSimulator& simulator, SimulatedDraft draft,
                                                   const SimulatedDraft& kept) {
  if (Fits(kept) || !MovesState(simulator.problem())) return draft;
  // Where little is left to gain, only what the strategies of one place have tried.
  if (IsGood(draft, kept)) {
    return Better(std::move(draft), BestSwapWithStateHome(simulator, kept));
  }
  absl::StatusOr<SimulatedDraft> start = BestWithStateHome(simulator, draft, kept);
  return SearchFrom(std::move(start), MoreOf(simulator.problem(), kMostWithStateHome, 4), simulator,
                    std::move(draft), kept);
}

// What goes, tensor by tensor, where all searches until then have moved whole layers.
absl::StatusOr<SimulatedDraft> SearchTensors(DraftSimulator& simulator, SimulatedDraft draft,
                                             const SimulatedDraft& kept) {
  if (Fits(kept) || IsGood(draft, kept)) return draft;
  return SearchFirstTensors(simulator, std::move(draft),
                            MoreOf(simulator.problem(), kMostForTensors, 2));
}

// The same, where state leaves late and comes back early; of large problems only as far as
// bisection finds it.
absl::StatusOr<SimulatedDraft> SearchWithTimedState(DraftSimulator& simulator, SimulatedDraft draft,
                                                    const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (Fits(kept) || IsGood(draft, kept) || !MovesState(problem)) return draft;
  if (!ReachesHost(problem, draft.draft.mapping)) return draft;
  const bool is_large = IsLarge(problem);
  absl::StatusOr<SimulatedDraft> start = BestWithTimedState(
      simulator, draft, kept, is_large ? TimingEffort::kCoarse : TimingEffort::kExact);
  if (absl::IsResourceExhausted(start.status())) return draft;
  if (is_large) return Better(std::move(draft), std::move(start));
  return SearchFrom(std::move(start), MoreOf(problem, kMostWithStateHome, 1), simulator,
                    std::move(draft), kept);
}

// Once more with layers computed again before their backward, which no draft until then does: so
// that nothing is lost to trying.
absl::StatusOr<SimulatedDraft> SearchMadeEarly(DraftSimulator& simulator, SimulatedDraft draft,
                                               const SimulatedDraft& kept) {
  if (Fits(kept) || IsGood(draft, kept)) return draft;
  const PlanningProblem& problem = simulator.problem();
  absl::StatusOr<SimulatedDraft> start =
      BestMadeEarly(simulator, draft, IsLarge(problem) ? EarlyStarts::kFew : EarlyStarts::kMany);
  return SearchFrom(std::move(start), MoreOf(problem, kMostMadeEarly, 8), simulator,
                    std::move(draft), kept);
}

// Of how many microbatches what goes does.
absl::StatusOr<SimulatedDraft> SearchMicrobatches(DraftSimulator& simulator, SimulatedDraft draft,
                                                  const SimulatedDraft& kept) {
  if (Fits(kept) || IsGood(draft, kept)) return draft;
  if (IsLarge(simulator.problem())) return draft;
  return SearchShares(simulator, std::move(draft), MoreOf(simulator.problem(), kMostForShares, 1));
}

// Once more with some of the state at home that steps on the host, where no draft until then has
// any of it at home.
absl::StatusOr<SimulatedDraft> SearchBroughtHome(DraftSimulator& simulator, SimulatedDraft draft,
                                                 const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (Fits(kept) || IsGood(draft, kept) || IsLarge(problem)) return draft;
  absl::StatusOr<SimulatedDraft> start = BestBroughtHome(simulator, draft);
  return SearchFrom(std::move(start), MoreOf(problem, kMostWithStateHome, 1), simulator,
                    std::move(draft), kept);
}

// Once more with some of the state streamed beside the host's step, which no draft until then has.
absl::StatusOr<SimulatedDraft> SearchStreamed(DraftSimulator& simulator, SimulatedDraft draft,
                                              const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (Fits(kept) || IsGood(draft, kept) || IsLarge(problem)) return draft;
  absl::StatusOr<SimulatedDraft> start = BestStreamed(simulator, draft);
  return SearchFrom(std::move(start), MoreOf(problem, kMostWithStateHome, 1), simulator,
                    std::move(draft), kept);
}

// Two of these searches from where the others have ended, which is often elsewhere.
absl::StatusOr<SimulatedDraft> SearchOnceMore(DraftSimulator& simulator, SimulatedDraft draft,
                                              const SimulatedDraft& kept) {
  if (IsLarge(simulator.problem())) return draft;
  SIPHON_ASSIGN_OR_RETURN(draft, SearchTensors(simulator, std::move(draft), kept));
  return SearchMadeEarly(simulator, std::move(draft), kept);
}

// Workers that only follow their programs take their copies as they come: these get more time where
// that costs less than a thousandth of a step, and no single strategy is faster.
absl::StatusOr<SimulatedDraft> SearchSlack(DraftSimulator& simulator, SimulatedDraft draft,
                                           const SimulatedDraft& kept) {
  if (simulator.problem().lending != LendingRule::kPeaks || Fits(kept)) return draft;
  const Nanos step = draft.score.step;
  Nanos longest = step + Nanos(step.value / 1'000);
  const absl::StatusOr<SimulatedDraft> single = BestSingle(simulator, kept);
  if (single.ok() && Fits(*single)) {
    longest = std::max(step, std::min(longest, single->score.step));
  }
  return GiveSlack(simulator, std::move(draft), longest);
}

// Strategies that make no drafts, and so cannot be improved here.
bool MakesDrafts(absl::string_view strategy) {
  constexpr absl::string_view kNames[] = {
      "keep", "recompute",      "host_swap",      "d2d_swap", "nvme_swap", "optimizer_offload",
      "vdnn", "capacity_based", "weight_offload", "l2l",      "auto"};
  return std::find(std::begin(kNames), std::end(kNames), strategy) != std::end(kNames);
}

}  // namespace

absl::StatusOr<PlannedStep> PlanAuto(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft kept, DraftKeep(simulator));
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft draft, BestDraft(simulator, kept));
  SIPHON_ASSIGN_OR_RETURN(MappedDraft mapped,
                          MapByStepTime(simulator, std::move(draft), kMostMaps));
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft improved,
                          Search(simulator, std::move(mapped.draft), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchOverTime(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchFromUniform(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchFromBlocks(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchSpreadSteps(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchWithStateHome(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchTensors(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchWithTimedState(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchMadeEarly(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchMicrobatches(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchBroughtHome(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchStreamed(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchOnceMore(simulator, std::move(improved), kept));
  SIPHON_ASSIGN_OR_RETURN(improved, SearchSlack(simulator, std::move(improved), kept));
  SIPHON_RETURN_IF_ERROR(AddSecondChoices(simulator, improved));
  absl::StatusOr<PlannedStep> best = PlannedOf(problem, std::move(improved), "auto");
  if (best.ok() && mapped.found) best->map = ProofOf(problem.score, *mapped.found);
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
