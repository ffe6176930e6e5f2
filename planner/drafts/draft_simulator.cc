#include "planner/drafts/draft_simulator.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/drafts/promised_peaks.h"
#include "planner/status.h"

namespace siphon {
namespace {

bool Lends(const MemoryPlan& memory) {
  return std::any_of(memory.stages.begin(), memory.stages.end(), [](const StagePlan& stage) {
    return std::any_of(stage.groups.begin(), stage.groups.end(), [](const PlannedGroup& planned) {
      return planned.choice.placement == Placement::kPeerSwap;
    });
  });
}

bool Lends(const DraftPlan& draft, DeviceId device) {
  return std::any_of(draft.lenders.begin(), draft.lenders.end(), [device](const auto& lenders) {
    return std::any_of(lenders.begin(), lenders.end(),
                       [device](const LenderWeight& lender) { return lender.lender == device; });
  });
}

bool CopiesToHost(const DraftPlan& draft) {
  return Uses(draft, Placement::kHostSwap) || Uses(draft, Placement::kNvmeSwap) ||
         AnyStageStepsOnHost(draft);
}

// Each simulates a step whose lenders are assigned by what the one before says about each moment.
constexpr int kMostLendingRounds = 3;

}  // namespace

bool Fits(const SimulatedDraft& simulated) { return simulated.score.excess == Bytes(0); }

absl::StatusOr<bool> TakeIfBetter(absl::StatusOr<SimulatedDraft> tried, SimulatedDraft& best) {
  if (absl::IsResourceExhausted(tried.status())) return false;
  if (!tried.ok()) return tried.status();
  if (tried->score >= best.score) return false;
  best = *std::move(tried);
  return true;
}

DraftSimulator::DraftSimulator(const PlanningProblem& problem, size_t known)
    : problem_(problem), lenders_(problem), programs_(problem.schedule), known_(problem, known) {}

std::vector<Bytes> DraftSimulator::PeaksOf(const SimulatedStep& step) const {
  const auto workers = static_cast<size_t>(WorkerCount(problem_.schedule));
  std::vector<Bytes> peaks(workers);
  for (size_t account = 0; account < step.peak.size(); ++account) {
    Bytes& peak = peaks[account % workers];
    peak = std::max(peak, Total(step.peak[account]));
  }
  return peaks;
}

absl::StatusOr<SimulatedDraft> DraftSimulator::Simulated(DraftPlan draft, LentMemory* lent) {
  MemoryPlan memory = PlanOf(problem_, draft);
  return SimulatedPlan(std::move(draft), std::move(memory), lent);
}

absl::StatusOr<SimulatedDraft> DraftSimulator::RunPlan(DraftPlan draft, MemoryPlan memory) {
  ++simulations_;
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft result,
                          SimulatedPlan(std::move(draft), std::move(memory), nullptr));
  SetScore(std::vector<Bytes>(result.peaks.size()), result);
  return result;
}

absl::StatusOr<SimulatedDraft> DraftSimulator::SimulatedPlan(DraftPlan draft, MemoryPlan memory,
                                                             LentMemory* lent) {
  absl::StatusOr<SimulatedDraft> tried = TriedPlan(std::move(draft), std::move(memory), lent);
  has_refused_ |= absl::IsResourceExhausted(tried.status());
  return tried;
}

absl::StatusOr<SimulatedDraft> DraftSimulator::TriedPlan(DraftPlan draft, MemoryPlan memory,
                                                         LentMemory* lent) {
  SimulatedDraft result{.draft = std::move(draft), .memory = std::move(memory)};
  SIPHON_ASSIGN_OR_RETURN(LoweredPlan lowered,
                          programs_.Lower(result.memory, LoweringOf(result.draft)));
  const bool promises = problem_.lending == LendingRule::kPeaks;
  const bool lends = promises && MayLend() && Lends(result.memory);
  SIPHON_ASSIGN_OR_RETURN(
      StepTimes times,
      known_.Run(result.draft.mapping, result.memory, lowered,
                 lent != nullptr || lends ? LendingDetail::kLent : LendingDetail::kNone));
  result.schedule = std::move(lowered.schedule);
  if (promises) {
    SIPHON_ASSIGN_OR_RETURN(result.peaks, PromisedPeaks(problem_, result.draft.mapping,
                                                        result.memory, result.schedule, times));
  } else {
    result.peaks = PeaksOf(times.step);
  }
  result.simulated = std::move(times.step);
  if (lent != nullptr) *lent = std::move(times.lent);
  return result;
}

void DraftSimulator::SetScore(const std::vector<Bytes>& unparked, SimulatedDraft& result) const {
  for (size_t worker = 0; worker < result.peaks.size(); ++worker) {
    const Bytes capacity = CapacityOf(static_cast<int>(worker));
    Bytes excess = unparked[worker];
    if (capacity > Bytes(0)) excess += std::max(Bytes(0), result.peaks[worker] - capacity);
    result.excess.push_back(excess);
    result.score.excess += excess;
  }
  for (const Bytes idle : lenders_.IdleExcess(result.simulated)) result.score.excess += idle;
  result.score.step = result.simulated.step_time;
}

absl::StatusOr<SimulatedDraft> DraftSimulator::Run(DraftPlan draft) {
  ++simulations_;
  const WithheldMemory nothing = lenders_.WithheldNothing();
  std::vector<Bytes> unparked = nothing.workers;
  if (Uses(draft, Placement::kPeerSwap)) {
    if (problem_.lending == LendingRule::kPeaks) return RunPromised(std::move(draft));
    SIPHON_ASSIGN_OR_RETURN(unparked, AssignLenders(nothing, draft));
  }
  const bool all_parked =
      std::all_of(unparked.begin(), unparked.end(), [](Bytes bytes) { return bytes == Bytes(0); });
  if (all_parked || !MayLend() || lending_ == LendingRule::kPeaks) {
    SIPHON_ASSIGN_OR_RETURN(SimulatedDraft result, Simulated(std::move(draft)));
    SetScore(unparked, result);
    return all_parked ? LendLess(std::move(result)) : std::move(result);
  }
  LentMemory lent;
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft result, Simulated(std::move(draft), &lent));
  SetScore(unparked, result);
  return LendOverTime(std::move(result), std::move(lent));
}

// Stripes are cut group by group, in whole granules, so that a lender may get a little more than
// was assigned to it: then it lends as much less.
absl::StatusOr<SimulatedDraft> DraftSimulator::LendLess(SimulatedDraft parked) {
  WithheldMemory withheld = lenders_.WithheldNothing();
  if (!lenders_.WithholdIdle(parked.simulated, withheld)) return parked;
  SimulatedDraft best = std::move(parked);
  for (int round = 1; round < kMostLendingRounds; ++round) {
    DraftPlan draft = best.draft;
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> unparked, AssignLenders(withheld, draft));
    SIPHON_ASSIGN_OR_RETURN(SimulatedDraft next, Simulated(std::move(draft)));
    SetScore(unparked, next);
    const bool lends_too_much = lenders_.WithholdIdle(next.simulated, withheld);
    if (next.score < best.score) best = std::move(next);
    if (!lends_too_much) break;
  }
  return best;
}

absl::StatusOr<SimulatedDraft> DraftSimulator::RunPromised(DraftPlan draft) {
  WithheldMemory withheld = lenders_.WithheldNothing();
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("nothing tried");
  for (int round = 0; round < kMostLendingRounds; ++round) {
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> unparked, AssignLenders(withheld, draft));
    absl::StatusOr<SimulatedDraft> next = Simulated(draft);
    if (absl::IsResourceExhausted(next.status()) && best.ok()) break;
    if (!next.ok()) return next.status();
    SetScore(unparked, *next);
    bool lends_too_much = lenders_.WithholdIdle(next->simulated, withheld);
    for (size_t worker = 0; worker < withheld.workers.size(); ++worker) {
      const Bytes over = next->excess[worker] - unparked[worker];
      lends_too_much |= over > Bytes(0) && Lends(draft, draft.mapping.device_of_worker[worker]);
      withheld.workers[worker] += over;
    }
    if (!best.ok() || next->score < best->score) best = *std::move(next);
    if (!lends_too_much) break;
  }
  return best;
}

// Nothing is known of a worker that gives to nobody so far, so it gives to all that it can reach
// for once.
absl::StatusOr<SimulatedDraft> DraftSimulator::LendOverTime(SimulatedDraft peaks, LentMemory lent) {
  WithheldMemory withheld =
      lenders_.WithheldNothing();  // by what they were too full in earlier rounds
  SimulatedDraft best = std::move(peaks);
  DraftPlan draft = best.draft;
  if (lenders_.GiveToAll(draft)) {
    const absl::StatusOr<SimulatedDraft> given = Simulated(draft, &lent);
    if (absl::IsResourceExhausted(given.status())) return best;
    if (!given.ok()) return given.status();
  }
  for (int round = 0; round < kMostLendingRounds; ++round) {
    const std::vector<std::vector<LenderWeight>> before = draft.lenders;
    SIPHON_ASSIGN_OR_RETURN(const bool have_room, lenders_.AssignOverTime(lent, withheld, draft));
    if (!have_room || draft.lenders == before) break;
    absl::StatusOr<SimulatedDraft> next = Simulated(draft, &lent);
    if (absl::IsResourceExhausted(next.status())) break;
    if (!next.ok()) return next.status();
    const std::vector<Bytes> not_given = lenders_.NotGiven(draft);
    SetScore(not_given, *next);
    for (size_t worker = 0; worker < not_given.size(); ++worker) {
      withheld.workers[worker] += next->excess[worker] - not_given[worker];
    }
    lenders_.WithholdIdle(next->simulated, withheld);
    const bool fits = Fits(*next);
    if (next->score < best.score) best = *std::move(next);
    if (fits) break;
  }
  return best;
}

DraftPlan DraftSimulator::WithoutLenders(const DraftPlan& draft) {
  DraftPlan kept = Replace(draft, Placement::kPeerSwap, Placement::kKeep, Placement::kKeep);
  kept.lenders.assign(kept.lenders.size(), {});
  return kept;
}

// Where nothing but messages is copied, a worker has the same in its memory, but for these, at each
// place of its program, whatever takes how long.
absl::StatusOr<std::optional<ParkingDemand>> DraftSimulator::DemandOnAnyMap(
    const DraftPlan& draft) {
  if (!MayLend() || lending_ != LendingRule::kPeaks) return std::nullopt;
  const DraftPlan kept = WithoutLenders(draft);
  if (CopiesToHost(kept)) return std::nullopt;
  ++simulations_;
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft alone, Simulated(kept));
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : alone.simulated.peak) {
    peaks.push_back(Total(peak) - peak[MemoryKind::kBoundary]);
  }
  return lenders_.DemandOf(peaks, lenders_.WithheldNothing(), draft);
}

absl::StatusOr<std::vector<Bytes>> DraftSimulator::OwnPeaks(const DraftPlan& draft) {
  DraftPlan kept = WithoutLenders(draft);
  if (kept == kept_) return kept_peaks_;
  ++simulations_;
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft alone, Simulated(kept));
  kept_ = std::move(kept);
  kept_peaks_ = PeaksOf(alone.simulated);
  return kept_peaks_;
}

absl::StatusOr<std::vector<Bytes>> DraftSimulator::AssignLenders(const WithheldMemory& withheld,
                                                                 DraftPlan& draft) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> peaks, OwnPeaks(draft));
  return lenders_.Assign(peaks, withheld, draft);
}

}  // namespace siphon
