#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/drafts/fit_moves.h"
#include "planner/drafts/host_reach.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/drafts/search_effort.h"
#include "planner/drafts/side_by_side.h"
#include "planner/search/further_searches.h"
#include "planner/search/give_slack.h"
#include "planner/search/improve_draft.h"
#include "planner/search/search_drafts.h"
#include "planner/search/start_drafts.h"
#include "planner/search/start_within_host.h"
#include "planner/search/tidy_draft.h"
#include "planner/search/uniform_starts.h"
#include "planner/search/weight_starts.h"
#include "planner/search/weight_streams.h"
#include "planner/second_choices/second_choices.h"
#include "planner/status.h"
#include "planner/strategies/single_drafts.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

// So many at most once more for weights; of large problems a quarter.
constexpr int kMostForWeights = 500;
// With lenders' memory moment by moment so small a part of the first search's simulations, of large
// problems: more found nothing there.
constexpr int kPartOverTime = 8;
// So many at most from a uniform start, whose step is at most 23/20 of what was found.
constexpr int kMostFromUniform = 900;
constexpr std::pair<int64_t, int64_t> kNearUniform = {20, 23};
// Of the step that keeps everything: beyond the first, a large problem is searched for longer, and
// beyond the second from blocks of weights, too; others, which are searched for longer anyway,
// beyond the third: without, GPT of 30 layers with 5.75 GB of each device of a DGX A100 takes ten
// times as long a step.
constexpr std::pair<int64_t, int64_t> kSlow = {9, 8};
constexpr std::pair<int64_t, int64_t> kSlower = {5, 4};
constexpr std::pair<int64_t, int64_t> kFarSlower = {2, 1};

// The best of all drafts, or the one that comes closest to fitting.
// `near_lenders` is the draft that keeps everything on the map from which lenders are reached
// fastest.
absl::StatusOr<SimulatedDraft> BestDraft(DraftSimulator& simulator,
                                         const SimulatedDraft* best_single,
                                         const DraftPlan& near_lenders) {
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft placed, simulator.Run(near_lenders));
  absl::StatusOr<SimulatedDraft> start = BestStart(simulator, placed);
  return best_single == nullptr ? start : Better(*best_single, std::move(start));
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

// What lenders have moment by moment, where what they have at their fullest was too little; from
// the draft that was found without, so that this is never worse. Of large problems only where
// nothing fits without: of 15 others no step got shorter by it.
absl::StatusOr<SimulatedDraft> SearchOverTime(DraftSimulator& simulator, SimulatedDraft draft,
                                              const SimulatedDraft& kept) {
  if (!simulator.MayLendOverTime() || simulator.problem().topology.links.empty()) return draft;
  const PlanningProblem& problem = simulator.problem();
  const bool fits = Fits(draft);
  if (IsGood(draft, kept) || (IsLarge(problem) && fits)) return draft;
  simulator.LendBy(LendingRule::kOverTime);
  SIPHON_ASSIGN_OR_RETURN(draft, Better(std::move(draft), DraftPeerSwap(simulator)));
  if (!fits) {
    SIPHON_ASSIGN_OR_RETURN(draft, Better(std::move(draft), BestStart(simulator, kept)));
  }
  const int most =
      simulator.simulations() + MoreOf(problem, ImprovementsOf(problem), kPartOverTime);
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

// The step is longer than `times` one that keeps everything.
bool IsBeyond(const std::pair<int64_t, int64_t>& times, const SimulatedDraft& draft,
              const SimulatedDraft& kept) {
  const auto [slow, step] = times;
  return draft.score.step.value / slow > kept.score.step.value / step;
}

// Where all that came to nothing: the room of buffers may be all that is missing. Where it came to
// nothing, or to little: from blocks of weights.
absl::StatusOr<SimulatedDraft> SearchFromBlocks(DraftSimulator& simulator, SimulatedDraft draft,
                                                const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  const bool large = IsLarge(problem);
  const auto search = [&](SimulatedDraft start) {
    return SearchWith(WeightSearch::kAnywhere, std::min(ImprovementsOf(problem), kMostForWeights),
                      simulator, std::move(start), kept);
  };
  const bool fitted = Fits(draft);
  if (fitted && !IsBeyond(large ? kSlower : kFarSlower, draft, kept)) return draft;
  if (!fitted) {
    SIPHON_ASSIGN_OR_RETURN(draft, BestWeightStreams(simulator, std::move(draft)));
    if (IsEnough(problem, draft)) return draft;
    if (Fits(draft)) {
      SIPHON_ASSIGN_OR_RETURN(draft, search(std::move(draft)));
    }
  }
  if (!ReachesHost(problem, draft.draft.mapping)) return draft;
  const DeviceMapping mapping = draft.draft.mapping;
  std::optional<DraftScore> best_start;
  // Fewer buffers where they make a shorter start, or more have no room; what is searched from
  // there may be longer all the same.
  for (int buffers = kMostStreamBuffers; buffers > 0; --buffers) {
    absl::StatusOr<SimulatedDraft> start = FitWeightBlocks(simulator, mapping, buffers);
    if (absl::IsResourceExhausted(start.status())) continue;
    if (!start.ok()) return start.status();
    if (best_start && *best_start <= start->score) continue;
    best_start = start->score;
    if (!Fits(*start)) {
      SIPHON_ASSIGN_OR_RETURN(draft, Better(std::move(draft), *std::move(start)));
      continue;
    }
    if (fitted && !large && draft.score <= start->score) continue;
    SIPHON_ASSIGN_OR_RETURN(draft, Better(std::move(draft), search(*std::move(start))));
    if (IsEnough(problem, draft)) return draft;
  }
  return draft;
}

// Workers that only follow their programs take their copies as they come: these get more time where
// that costs less than a thousandth of a step, and no single strategy is faster.
absl::StatusOr<SimulatedDraft> SearchSlack(DraftSimulator& simulator, SimulatedDraft draft,
                                           const SimulatedDraft& kept,
                                           const SimulatedDraft* best_single) {
  if (simulator.problem().lending != LendingRule::kPeaks || Fits(kept)) return draft;
  const Nanos step = draft.score.step;
  Nanos longest = step + Nanos(step.value / 1'000);
  if (best_single != nullptr && Fits(*best_single)) {
    longest = std::max(step, std::min(longest, best_single->score.step));
  }
  return GiveSlack(simulator, std::move(draft), longest);
}

// What is known of the plan's map: by a search for the shortest step, or that it is the one from
// which lenders are reached fastest.
absl::StatusOr<std::optional<MapProof>> ProofOfMap(const PlanningProblem& problem,
                                                   const SimulatedDraft& kept,
                                                   const PlannedStep& planned,
                                                   const std::optional<FoundMap>& by_step) {
  if (by_step) return ProofOf(MappingScore::kStepTime, *by_step);
  if (problem.score == MappingScore::kStepTime || Fits(kept)) return std::nullopt;
  SIPHON_ASSIGN_OR_RETURN(const LenderMap mapped, MapToLenders(problem, kept));
  if (!mapped.found || mapped.found->mapping != planned.mapping) return std::nullopt;
  return ProofOf(MappingScore::kSwapTime, *mapped.found);
}

// All searches, one after the other, each from the best draft until then.
absl::StatusOr<MappedDraft> SearchAll(DraftSimulator& simulator, SimulatedDraft draft,
                                      const SimulatedDraft& kept,
                                      const SimulatedDraft* best_single) {
  const PlanningProblem& problem = simulator.problem();
  if (IsEnough(problem, draft)) return MappedDraft{.draft = std::move(draft)};
  if (IsLarge(problem)) {  // a few simulations, for more than many others gain
    SIPHON_ASSIGN_OR_RETURN(draft, SearchSpreadSteps(simulator, std::move(draft), kept));
  }
  Tell(problem, "placing stages on devices", draft);
  SIPHON_ASSIGN_OR_RETURN(MappedDraft mapped,
                          MapByStepTime(simulator, std::move(draft), MapsAtFirst(problem)));
  if (IsEnough(problem, mapped.draft)) return mapped;
  Tell(problem, "improving the best start", mapped.draft);
  SIPHON_ASSIGN_OR_RETURN(draft, Search(simulator, std::move(mapped.draft), kept));
  Tell(problem, "looking at lenders moment by moment", draft);
  SIPHON_ASSIGN_OR_RETURN(draft, SearchOverTime(simulator, std::move(draft), kept));
  Tell(problem, "starting with all stages alike", draft);
  SIPHON_ASSIGN_OR_RETURN(draft, SearchFromUniform(simulator, std::move(draft), kept));
  SIPHON_ASSIGN_OR_RETURN(draft, SearchFromBlocks(simulator, std::move(draft), kept));
  if (IsEnough(problem, draft)) return MappedDraft{.draft = std::move(draft)};
  SIPHON_ASSIGN_OR_RETURN(draft, SearchFurther(simulator, std::move(draft), kept));
  Tell(problem, "placing stages on devices once more", draft);
  SIPHON_ASSIGN_OR_RETURN(mapped, MapByStepTime(simulator, std::move(draft), MapsFor(problem)));
  SIPHON_ASSIGN_OR_RETURN(mapped.draft,
                          SearchSlack(simulator, std::move(mapped.draft), kept, best_single));
  return mapped;
}

// Once more from hosts as full as they can be, where these may be too small for all that leaves:
// searches from other starts stop long before.
absl::StatusOr<MappedDraft> SearchFromFullHosts(DraftSimulator& simulator, MappedDraft found,
                                                const SimulatedDraft& kept,
                                                const DraftPlan& near_lenders,
                                                const SimulatedDraft* best_single) {
  const PlanningProblem& problem = simulator.problem();
  if (!MayFillHosts(problem, kept) || IsGood(found.draft, kept)) return found;
  if (!simulator.has_refused()) return found;  // there was room for whatever leaves
  if (!ReachesHost(problem, found.draft.draft.mapping)) return found;
  Tell(problem, "starting once more with full hosts", found.draft);
  DraftSimulator once_more(problem);
  absl::StatusOr<SimulatedDraft> start = StartWithinHost(once_more, near_lenders);
  if (absl::IsFailedPrecondition(start.status()) || absl::IsResourceExhausted(start.status())) {
    return found;
  }
  if (!start.ok()) return start.status();
  SIPHON_ASSIGN_OR_RETURN(MappedDraft other,
                          SearchAll(once_more, *std::move(start), kept, best_single));
  if (found.draft.score <= other.draft.score) return found;
  simulator.LendBy(once_more.lending());
  return other;
}

// Once more with more simulations, where few of them have left a large problem with a slow step: it
// is trained for longer than it is planned. What does not fit is refused soon.
absl::StatusOr<MappedDraft> SearchLonger(DraftSimulator& simulator, MappedDraft found,
                                         const SimulatedDraft& kept,
                                         const SimulatedDraft* best_single) {
  PlanningProblem longer = simulator.problem();
  if (longer.goal != PlanningGoal::kShortestStep) return found;
  longer.effort = std::max(longer.effort, longer.most_effort);
  if (!Fits(found.draft) || IsLarge(longer)) return found;
  if (!IsLarge(simulator.problem()) || !IsBeyond(kSlow, found.draft, kept)) return found;
  Tell(longer, "searching longer, as the step is slow", found.draft);
  DraftSimulator once_more(longer);
  once_more.LendBy(simulator.lending());
  SIPHON_ASSIGN_OR_RETURN(MappedDraft other, SearchAll(once_more, found.draft, kept, best_single));
  if (found.draft.score <= other.draft.score) return found;
  simulator.LendBy(once_more.lending());
  return other;
}

// Goes on with a search for the best map that ended by its limit, where more is allowed for a
// proof.
absl::StatusOr<MappedDraft> ProveMap(DraftSimulator& simulator, MappedDraft found) {
  const PlanningProblem& problem = simulator.problem();
  if (!found.found) return found;
  const auto effort = MapsLeftToProve(problem, ProofOf(problem.score, *found.found));
  if (!effort) return found;
  Tell(problem, "looking at all maps of stages to devices", found.draft);
  return MapByStepTime(simulator, std::move(found.draft), *effort);
}

// All searches for drafts, and where these leave something to be found, both kinds of them once
// more.
absl::StatusOr<MappedDraft> SearchAllDrafts(DraftSimulator& simulator, SimulatedDraft start,
                                            const SimulatedDraft& kept,
                                            const DraftPlan& near_lenders,
                                            const SimulatedDraft* best_single) {
  SIPHON_ASSIGN_OR_RETURN(MappedDraft found,
                          SearchAll(simulator, std::move(start), kept, best_single));
  if (IsEnough(simulator.problem(), found.draft)) return found;
  SIPHON_ASSIGN_OR_RETURN(
      found, SearchFromFullHosts(simulator, std::move(found), kept, near_lenders, best_single));
  SIPHON_ASSIGN_OR_RETURN(found, SearchLonger(simulator, std::move(found), kept, best_single));
  return ProveMap(simulator, std::move(found));
}

}  // namespace

absl::StatusOr<PlannedStep> PlanAuto(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft kept, DraftKeep(simulator));
  Tell(problem, "trying one place for all", kept);
  LenderMap mapped{.draft = kept.draft};
  if (!Fits(kept)) {
    SIPHON_ASSIGN_OR_RETURN(mapped, MapToLenders(problem, kept));
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<SingleDraft> singles, SingleDrafts(simulator, kept));
  const SimulatedDraft* best_single = BestOf(singles);
  SimulatedDraft start = kept;
  if (!Fits(kept)) {
    SIPHON_ASSIGN_OR_RETURN(start, BestDraft(simulator, best_single, mapped.draft));
  }
  // Where the first plan that fits is enough, the others are asked only if there is none.
  const bool asks_at_once = problem.goal != PlanningGoal::kAnyThatFits;
  absl::StatusOr<MappedDraft> searched = absl::InternalError("nothing was searched");
  std::vector<absl::StatusOr<PlannedStep>> others;
  RunSideBySide(problem, asks_at_once ? 2 : 1, [&](int index) {
    if (index == 0) {
      searched = SearchAllDrafts(simulator, std::move(start), kept, mapped.draft, best_single);
    } else {
      others = PlansThatAreNoDrafts(problem, best_single);
    }
  });
  SIPHON_ASSIGN_OR_RETURN(MappedDraft found, std::move(searched));
  const bool is_enough = IsEnough(problem, found.draft);
  if (!is_enough) {
    Tell(problem, "choosing second choices", found.draft);
    SIPHON_RETURN_IF_ERROR(AddSecondChoices(simulator, found.draft));
  }
  absl::StatusOr<PlannedStep> best = PlannedOf(problem, std::move(found.draft), "auto");
  if (best.ok() && is_enough) return best;
  if (best.ok()) {
    SIPHON_ASSIGN_OR_RETURN(best->map, ProofOfMap(problem, kept, *best, found.found));
  }
  if (problem.news) {
    problem.news("asking all other strategies", best.ok() ? best->simulated.step_time : Nanos(0));
  }
  if (!asks_at_once) others = PlansThatAreNoDrafts(problem, best_single);
  for (absl::StatusOr<PlannedStep>& other : others) TakeIfFaster(std::move(other), best);
  return BestOnOwnMaps(problem, kept, singles, std::move(best));
}

}  // namespace siphon
