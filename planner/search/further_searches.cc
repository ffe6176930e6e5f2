#include "planner/search/further_searches.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/drafts/fit_moves.h"
#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/drafts/search_effort.h"
#include "planner/drafts/side_by_side.h"
#include "planner/search/activation_streams.h"
#include "planner/search/anneal_draft.h"
#include "planner/search/bring_home.h"
#include "planner/search/exchange_steps.h"
#include "planner/search/first_tensors_search.h"
#include "planner/search/home_starts.h"
#include "planner/search/made_early.h"
#include "planner/search/pattern_search.h"
#include "planner/search/search_drafts.h"
#include "planner/search/share_search.h"
#include "planner/search/spread_steps.h"
#include "planner/search/state_home.h"
#include "planner/search/stream_steps.h"
#include "planner/search/tidy_draft.h"
#include "planner/search/time_state_home.h"
#include "planner/search/weight_streams.h"
#include "planner/status.h"

namespace siphon {
namespace {

// So many at most once more with optimizer state at home between steps; of large problems a
// quarter.
constexpr int kMostWithStateHome = 900;
// So many at most with optimizer steps spread over host and links; of large problems none.
constexpr int kMostForSteps = 600;
// So many at most with other buffers for weights that stream, and gradients that come in ahead; of
// large problems a quarter.
constexpr int kMostForStreams = 300;
// So many at most with activations that stream, where the step is longer than one that keeps
// everything by more than such a part of it, of large problems by more than the other.
constexpr int kMostForActivationStreams = 600;
constexpr int64_t kNearPart = 50;
constexpr int64_t kSlowPart = 5;
// So many at most for tensors within layers; of large problems none: of 15 of them no step got
// shorter by any, nor by times for state.
constexpr int kMostForTensors = 600;
// So many at most with layers made early; of large problems an eighth.
constexpr int kMostMadeEarly = 900;
// So many at most for shares of microbatches; of large problems none.
constexpr int kMostForShares = 900;
// So many at most from each of the starts that send state away and compute again at once, and from
// patterns; of large problems none.
constexpr int kMostFromFarStart = 600;
// So many at most to find these.
constexpr int kMostHomeStarts = 1'200;
// So many times the first search's simulations for patterns of all stages, at most so many; of
// large problems none.
constexpr int kTimesForPatterns = 6;
constexpr int kMostForPatterns = 6'000;
// So often: each ends elsewhere, by 2 % of a step and more.
constexpr int kPatternSeeds = 2;
// So many at most with the stages of several workers changed at once; of large problems none.
constexpr int kMostForNeighbours = 3'600;
// So many at most for steps that two workers exchange with the host.
constexpr int kMostForExchanges = 900;

// Whether any worker steps at its end, with optimizer state that could be away until then.
bool MovesState(const PlanningProblem& problem) {
  return AnyMove(OptimizerStateMoves(problem, Placement::kHostSwap));
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

// Once more with other buffers for weights that stream, and gradients that come in before their
// backward begins.
absl::StatusOr<SimulatedDraft> SearchStreams(DraftSimulator& simulator, SimulatedDraft draft,
                                             const SimulatedDraft& kept) {
  if (IsGood(draft, kept) || !StreamsWeights(draft.draft)) return draft;
  absl::StatusOr<SimulatedDraft> start = BestWeightStreams(simulator, draft);
  return SearchFrom(std::move(start), MoreOf(simulator.problem(), kMostForStreams, 4), simulator,
                    std::move(draft), kept);
}

// Once more with activations that go through the host layer by layer. Large problems have time for
// it only where their step is slow.
absl::StatusOr<SimulatedDraft> SearchActivationStreams(DraftSimulator& simulator,
                                                       SimulatedDraft draft,
                                                       const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  const int64_t part = IsLarge(problem) ? kSlowPart : kNearPart;
  const Nanos enough = kept.score.step + Nanos(kept.score.step.value / part);
  const bool is_enough = Fits(draft) && draft.score.step <= enough;
  if (Fits(kept) || is_enough || !ReachesHost(problem, draft.draft.mapping)) return draft;
  absl::StatusOr<SimulatedDraft> start = BestActivationStreams(simulator, draft);
  return SearchFrom(std::move(start), MoreOf(problem, kMostForActivationStreams, 1), simulator,
                    std::move(draft), kept);
}

// Before the other searches where nothing fits without, and of large problems, which have few of
// them; else last: from there the others end elsewhere, as often with a longer step as with a
// shorter one.
absl::StatusOr<SimulatedDraft> StreamActivationsFirst(DraftSimulator& simulator,
                                                      SimulatedDraft draft,
                                                      const SimulatedDraft& kept) {
  if (Fits(draft) && !IsLarge(simulator.problem())) return draft;
  return SearchActivationStreams(simulator, std::move(draft), kept);
}
absl::StatusOr<SimulatedDraft> StreamActivationsLast(DraftSimulator& simulator,
                                                     SimulatedDraft draft,
                                                     const SimulatedDraft& kept) {
  if (IsLarge(simulator.problem())) return draft;
  return SearchActivationStreams(simulator, std::move(draft), kept);
}

// What goes, tensor by tensor, where all searches until then have moved whole layers.
absl::StatusOr<SimulatedDraft> SearchTensors(DraftSimulator& simulator, SimulatedDraft draft,
                                             const SimulatedDraft& kept) {
  if (Fits(kept) || IsGood(draft, kept) || IsLarge(simulator.problem())) return draft;
  return SearchFirstTensors(simulator, std::move(draft),
                            MoreOf(simulator.problem(), kMostForTensors, 1));
}

// The same, where state leaves late and comes back early.
absl::StatusOr<SimulatedDraft> SearchWithTimedState(DraftSimulator& simulator, SimulatedDraft draft,
                                                    const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (Fits(kept) || IsGood(draft, kept) || !MovesState(problem)) return draft;
  if (IsLarge(problem) || !ReachesHost(problem, draft.draft.mapping)) return draft;
  absl::StatusOr<SimulatedDraft> start = BestWithTimedState(simulator, draft, kept);
  if (absl::IsResourceExhausted(start.status())) return draft;
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

// Once more with the state that is away between steps in as early as there is room for it, at all
// workers at once: one alone gains nothing while others wait for theirs.
absl::StatusOr<SimulatedDraft> SearchEarlyState(DraftSimulator& simulator, SimulatedDraft draft,
                                                const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (Fits(kept) || IsGood(draft, kept) || IsLarge(problem) || !MovesState(problem)) return draft;
  absl::StatusOr<SimulatedDraft> start = TimeStateIn(simulator, draft.draft);
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

// More than a fiftieth is left to gain, and there is time to look for it.
bool MayGainMore(const PlanningProblem& problem, const SimulatedDraft& draft,
                 const SimulatedDraft& kept) {
  const Nanos enough = kept.score.step + Nanos(kept.score.step.value / 50);
  const bool is_nearly_good = Fits(draft) && draft.score.step <= enough;
  return !Fits(kept) && !is_nearly_good && !IsLarge(problem);
}

// Once more from a start that nothing before comes to; of one that a first search does not bring
// near to `draft`, no more than that.
absl::StatusOr<SimulatedDraft> SearchFarStart(DraftSimulator& simulator, SimulatedDraft start,
                                              SimulatedDraft draft, const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft found,
                          SearchWith(WeightSearch::kOnlyBack, MoreOf(problem, kMostFromFarStart, 1),
                                     simulator, std::move(start), kept));
  const Nanos step = draft.score.step;
  if (Fits(draft) && found.score.step > step + Nanos(step.value / 16)) return draft;
  for (const auto& search : {SearchTensors, SearchWithTimedState, SearchMicrobatches,
                             SearchBroughtHome, SearchEarlyState, SearchOnceMore}) {
    SIPHON_ASSIGN_OR_RETURN(found, search(simulator, std::move(found), kept));
  }
  return Better(std::move(draft), std::move(found));
}

// From starts with optimizer state away.
absl::StatusOr<SimulatedDraft> SearchFromHome(DraftSimulator& simulator, SimulatedDraft draft,
                                              const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  SIPHON_ASSIGN_OR_RETURN(std::vector<SimulatedDraft> starts,
                          HomeStarts(simulator, draft.draft.mapping,
                                     std::min(2 * ImprovementsOf(problem), kMostHomeStarts)));
  for (SimulatedDraft& start : starts) {
    SIPHON_ASSIGN_OR_RETURN(draft,
                            SearchFarStart(simulator, std::move(start), std::move(draft), kept));
  }
  return draft;
}

// From few numbers for all stages.
absl::StatusOr<SimulatedDraft> SearchFromPatterns(DraftSimulator& simulator, SimulatedDraft draft,
                                                  const SimulatedDraft& kept, uint64_t seed) {
  DraftPlan there = kept.draft;
  there.mapping = draft.draft.mapping;
  const int simulations =
      std::min(kTimesForPatterns * ImprovementsOf(simulator.problem()), kMostForPatterns);
  absl::StatusOr<SimulatedDraft> start = BestPatterns(simulator, there, simulations, seed);
  if (absl::IsResourceExhausted(start.status())) return draft;
  if (!start.ok()) return start.status();
  return SearchFarStart(simulator, *std::move(start), std::move(draft), kept);
}

// All of these, side by side, each with a simulator of its own: what one has found is nothing to
// the others, so that plans are the same however many run at once.
absl::StatusOr<SimulatedDraft> SearchFarStarts(DraftSimulator& simulator, SimulatedDraft draft,
                                               const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (!MayGainMore(problem, draft, kept)) return draft;
  struct Found {
    absl::StatusOr<SimulatedDraft> draft;
    bool has_refused = false;
  };
  std::vector<Found> found(1 + kPatternSeeds);
  const auto search = [&](int index) {
    DraftSimulator own(problem);
    own.LendBy(simulator.lending());
    found[index].draft = index == 0
                             ? SearchFromHome(own, draft, kept)
                             : SearchFromPatterns(own, draft, kept, static_cast<uint64_t>(index));
    found[index].has_refused = own.has_refused();
  };
  RunSideBySide(problem, static_cast<int>(found.size()), search);
  for (Found& one : found) {
    SIPHON_ASSIGN_OR_RETURN(draft, Better(std::move(draft), std::move(one.draft)));
    if (one.has_refused) simulator.CountRefusal();
  }
  return draft;
}

// The stages of several workers at once, where those of one at a time gain nothing any more.
absl::StatusOr<SimulatedDraft> SearchNeighbours(DraftSimulator& simulator, SimulatedDraft draft,
                                                const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (!MayGainMore(problem, draft, kept)) return draft;
  SIPHON_ASSIGN_OR_RETURN(draft,
                          AnnealDraft(simulator, std::move(draft),
                                      std::min(6 * ImprovementsOf(problem), kMostForNeighbours),
                                      WeightSearch::kOnlyBack, AnnealedStages::kNeighbours));
  return TidyDraft(simulator, std::move(draft));
}

// Steps on the host for steps on devices, of two workers at once.
absl::StatusOr<SimulatedDraft> SearchExchanges(DraftSimulator& simulator, SimulatedDraft draft,
                                               const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  if (!MayGainMore(problem, draft, kept) || !MovesState(problem)) return draft;
  return ExchangeSteps(simulator, std::move(draft), MoreOf(problem, kMostForExchanges, 1));
}

struct FurtherSearch {
  absl::string_view doing;
  absl::StatusOr<SimulatedDraft> (*search)(DraftSimulator& simulator, SimulatedDraft draft,
                                           const SimulatedDraft& kept);
};

// They may find room where nothing fits yet.
constexpr FurtherSearch kForRoom[] = {
    {"streaming weights with other buffers", SearchStreams},
    {"streaming activations through the host", StreamActivationsFirst},
    {"spreading optimizer steps over host and devices", SearchSpreadSteps},
    {"keeping optimizer state at home between steps", SearchWithStateHome},
    {"moving tensors within layers", SearchTensors},
    {"timing when optimizer state leaves and returns", SearchWithTimedState},
    {"recomputing layers before their backward", SearchMadeEarly},
    {"moving some of the microbatches", SearchMicrobatches}};
// They find shorter steps, not room.
constexpr FurtherSearch kForTime[] = {
    {"bringing optimizer state home", SearchBroughtHome},
    {"streaming optimizer state beside the host's steps", SearchStreamed},
    {"bringing optimizer state in early", SearchEarlyState},
    {"moving tensors within layers once more", SearchOnceMore},
    {"starting with state away, and with few numbers for all stages", SearchFarStarts},
    {"changing several workers at once", SearchNeighbours},
    {"exchanging steps between host and devices", SearchExchanges},
    {"streaming activations through the host", StreamActivationsLast}};

}  // namespace

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

absl::StatusOr<SimulatedDraft> SearchFurther(DraftSimulator& simulator, SimulatedDraft draft,
                                             const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  for (const auto& [doing, search] : kForRoom) {
    Tell(problem, doing, draft);
    SIPHON_ASSIGN_OR_RETURN(draft, search(simulator, std::move(draft), kept));
    if (IsEnough(problem, draft)) return draft;
  }
  if (!Fits(draft)) return draft;
  for (const auto& [doing, search] : kForTime) {
    Tell(problem, doing, draft);
    SIPHON_ASSIGN_OR_RETURN(draft, search(simulator, std::move(draft), kept));
  }
  return draft;
}

}  // namespace siphon
