#include "planner/strategies/draft_simulator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "planner/mapping/assign_over_time.h"
#include "planner/mapping/assign_parking.h"
#include "planner/status.h"
#include "planner/strategies/make_groups.h"
#include "planner/strategies/promised_peaks.h"

namespace siphon {
namespace {

bool IsBackward(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

// [stage]: most microbatches at once between their forward and their backward, both included,
// without those whose backward follows directly, which LowerMemoryPlan leaves where they are.
std::vector<int> MostAway(const Schedule& schedule) {
  std::vector<int> most(schedule.worker_of_stage.size(), 0);
  for (const std::vector<Action>& program : schedule.programs) {
    std::vector<int> live(most.size(), 0);
    Action before;  // compute action
    for (const Action& action : program) {
      if (!IsCompute(action.kind)) continue;
      const int stage = action.stage.value;
      if (action.kind == ActionKind::kForward) ++live[stage];
      if (IsBackward(action.kind)) {
        const bool stayed = before.kind == ActionKind::kForward && before.stage == action.stage &&
                            before.microbatch == action.microbatch;
        most[stage] = std::max(most[stage], live[stage] - (stayed ? 1 : 0));
        --live[stage];
      }
      before = action;
    }
  }
  return most;
}

// [worker]
std::vector<std::vector<LenderWeight>> LendersOf(const ParkingAssignment& assignment) {
  std::vector<std::vector<LenderWeight>> lenders;
  for (const OwnerParking& owner : assignment.owners) {
    std::vector<LenderWeight>& weights = lenders.emplace_back();
    for (const Stripe& stripe : owner.stripes) {
      weights.push_back({stripe.lender, stripe.bytes.value});
    }
  }
  return lenders;
}

// Of so many microbatches at once those that go. What is live is not always a run of neighbours,
// so one more; where that is too few, the simulated step tells.
int AwayOf(int microbatches, int share) {
  constexpr int kShares = LowerMemoryOptions::kShares;
  return std::min(microbatches, (microbatches * share + kShares - 1) / kShares + 1);
}

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

// Each simulates a step whose lenders are assigned by what the one before says about each moment.
constexpr int kMostLendingRounds = 3;

// Bytes a second; stands for a pair without a limit.
constexpr int64_t kFastestPair = 1'000'000'000'000;

}  // namespace

bool Fits(const SimulatedDraft& simulated) { return simulated.score.excess == Bytes(0); }

absl::StatusOr<bool> TakeIfBetter(absl::StatusOr<SimulatedDraft> tried, SimulatedDraft& best) {
  if (absl::IsResourceExhausted(tried.status())) return false;
  if (!tried.ok()) return tried.status();
  if (tried->score >= best.score) return false;
  best = *std::move(tried);
  return true;
}

DraftSimulator::DraftSimulator(const PlanningProblem& problem)
    : problem_(problem),
      away_(MostAway(problem.schedule)),
      fabric_(MakeSwapFabric(problem.topology)),
      programs_(problem.schedule),
      known_(problem) {
  versions_ = PeakWeightVersions(problem.schedule);
}

bool DraftSimulator::MayLend() const {
  return DeviceCount(problem_.topology) > 0 && problem_.schedule.replicas == 1;
}

Bytes DraftSimulator::CapacityOf(int worker) const {
  return problem_.capacity.empty() ? Bytes(0) : problem_.capacity[worker];
}

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
  for (const Bytes idle : IdleExcess(result)) result.score.excess += idle;
  result.score.step = result.simulated.step_time;
}

DraftSimulator::Withheld DraftSimulator::Nothing() const {
  return {.workers = std::vector<Bytes>(static_cast<size_t>(WorkerCount(problem_.schedule))),
          .idle = std::vector<Bytes>(problem_.topology.devices.size())};
}

std::vector<Bytes> DraftSimulator::IdleExcess(const SimulatedDraft& draft) const {
  std::vector<Bytes> excess;
  for (int device = 0; device < DeviceCount(problem_.topology); ++device) {
    const Bytes memory = problem_.topology.devices[device].memory;
    const Bytes peak = PeakOfIdleDevice(draft.simulated, DeviceId(device));
    excess.push_back(memory > Bytes(0) ? std::max(Bytes(0), peak - memory) : Bytes(0));
  }
  return excess;
}

bool DraftSimulator::WithholdIdle(const SimulatedDraft& draft, Withheld& withheld) const {
  const std::vector<Bytes> excess = IdleExcess(draft);
  bool any = false;
  for (size_t device = 0; device < excess.size(); ++device) {
    withheld.idle[device] += excess[device];
    any |= excess[device] > Bytes(0);
  }
  return any;
}

Topology DraftSimulator::LendingTopology(const Withheld& withheld) const {
  Topology topology = problem_.topology;
  for (size_t device = 0; device < topology.devices.size(); ++device) {
    Bytes& memory = topology.devices[device].memory;
    memory = std::max(Bytes(0), memory - withheld.idle[device]);
  }
  return topology;
}

absl::StatusOr<SimulatedDraft> DraftSimulator::Run(DraftPlan draft) {
  ++simulations_;
  const Withheld nothing = Nothing();
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
  Withheld withheld = Nothing();
  if (!WithholdIdle(parked, withheld)) return parked;
  SimulatedDraft best = std::move(parked);
  for (int round = 1; round < kMostLendingRounds; ++round) {
    DraftPlan draft = best.draft;
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> unparked, AssignLenders(withheld, draft));
    SIPHON_ASSIGN_OR_RETURN(SimulatedDraft next, Simulated(std::move(draft)));
    SetScore(unparked, next);
    const bool lends_too_much = WithholdIdle(next, withheld);
    if (next.score < best.score) best = std::move(next);
    if (!lends_too_much) break;
  }
  return best;
}

absl::StatusOr<SimulatedDraft> DraftSimulator::RunPromised(DraftPlan draft) {
  Withheld withheld = Nothing();
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("nothing tried");
  for (int round = 0; round < kMostLendingRounds; ++round) {
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> unparked, AssignLenders(withheld, draft));
    absl::StatusOr<SimulatedDraft> next = Simulated(draft);
    if (absl::IsResourceExhausted(next.status()) && best.ok()) break;
    if (!next.ok()) return next.status();
    SetScore(unparked, *next);
    bool lends_too_much = WithholdIdle(*next, withheld);
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

std::vector<std::vector<Bytes>> DraftSimulator::LendableOf(
    const LentMemory& lent, const std::vector<Bytes>& withheld) const {
  std::vector<std::vector<Bytes>> lendable;
  for (size_t worker = 0; worker < lent.own.size(); ++worker) {
    const Bytes room = CapacityOf(static_cast<int>(worker)) - withheld[worker];
    std::vector<Bytes>& curve = lendable.emplace_back();
    for (const Bytes own : lent.own[worker]) curve.push_back(std::max(Bytes(0), room - own));
  }
  return lendable;
}

std::vector<Bytes> DraftSimulator::NotGiven(const DraftPlan& draft) const {
  std::vector<Bytes> bytes;
  for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
    bytes.push_back(draft.lenders[worker].empty() ? ParkedBy(draft, worker) : Bytes(0));
  }
  return bytes;
}

bool DraftSimulator::GiveToAll(DraftPlan& draft) const {
  bool given = false;
  const std::vector<Bytes> not_given = NotGiven(draft);
  for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
    if (not_given[worker] == Bytes(0)) continue;
    const std::vector<int64_t>& rates = fabric_.rate[draft.mapping.device_of_worker[worker].value];
    for (int lender = 0; lender < fabric_.devices; ++lender) {
      if (rates[lender] == 0) continue;
      draft.lenders[worker].push_back({DeviceId(lender), std::min(rates[lender], kFastestPair)});
      given = true;
    }
  }
  return given;
}

// Nothing is known of a worker that gives to nobody so far, so it gives to all that it can reach
// for once.
absl::StatusOr<SimulatedDraft> DraftSimulator::LendOverTime(SimulatedDraft peaks, LentMemory lent) {
  Withheld withheld = Nothing();  // by what they were too full in earlier rounds
  SimulatedDraft best = std::move(peaks);
  DraftPlan draft = best.draft;
  if (GiveToAll(draft)) {
    const absl::StatusOr<SimulatedDraft> given = Simulated(draft, &lent);
    if (absl::IsResourceExhausted(given.status())) return best;
    if (!given.ok()) return given.status();
  }
  for (int round = 0; round < kMostLendingRounds; ++round) {
    SIPHON_ASSIGN_OR_RETURN(
        const ParkingAssignment assignment,
        AssignParkingOverTime(LendingTopology(withheld), draft.mapping,
                              {lent.parked, LendableOf(lent, withheld.workers)}, problem_.granule));
    if (assignment.unparked > Bytes(0)) break;
    std::vector<std::vector<LenderWeight>> before =
        std::exchange(draft.lenders, LendersOf(assignment));
    if (draft.lenders == before) break;
    absl::StatusOr<SimulatedDraft> next = Simulated(draft, &lent);
    if (absl::IsResourceExhausted(next.status())) break;
    if (!next.ok()) return next.status();
    const std::vector<Bytes> not_given = NotGiven(draft);
    SetScore(not_given, *next);
    for (size_t worker = 0; worker < not_given.size(); ++worker) {
      withheld.workers[worker] += next->excess[worker] - not_given[worker];
    }
    WithholdIdle(*next, withheld);
    const bool fits = Fits(*next);
    if (next->score < best.score) best = *std::move(next);
    if (fits) break;
  }
  return best;
}

absl::StatusOr<std::vector<Bytes>> DraftSimulator::OwnPeaks(const DraftPlan& draft) {
  DraftPlan kept = Replace(draft, Placement::kPeerSwap, Placement::kKeep, Placement::kKeep);
  kept.lenders.assign(kept.lenders.size(), {});
  if (kept == kept_) return kept_peaks_;
  ++simulations_;
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft alone, Simulated(kept));
  kept_ = std::move(kept);
  kept_peaks_ = PeaksOf(alone.simulated);
  return kept_peaks_;
}

Bytes DraftSimulator::ParkedBy(const DraftPlan& draft, int worker) const {
  Bytes parked;
  for (const StageId stage : StagesOf(problem_.schedule, WorkerId(worker))) {
    const StageDraft& decided = draft.stages[stage.value];
    const StageRange& layers = problem_.partition.stages[stage.value];
    for (int index = 0; index < kGroupKinds; ++index) {
      const auto kind = static_cast<GroupKind>(index);
      const std::vector<Placement>& placements = PlacementsOf(decided, kind);
      const int times = kind == GroupKind::kActivations      ? away_[stage.value]
                        : kind == GroupKind::kWeightVersions ? versions_[stage.value]
                                                             : 1;
      for (size_t place = 0; place < placements.size(); ++place) {
        if (placements[place] != Placement::kPeerSwap) continue;
        const int layer = layers.begin + static_cast<int>(place);
        const bool activations = kind == GroupKind::kActivations;
        const int first = activations ? decided.first_tensors[place] : 0;
        const int copies = activations ? AwayOf(times, decided.shares[place]) : times;
        parked += GroupOf(problem_.profile, layers, kind, {layer, layer + 1}, first).bytes * copies;
      }
    }
  }
  return parked;
}

absl::StatusOr<std::vector<Bytes>> DraftSimulator::AssignLenders(const Withheld& withheld,
                                                                 DraftPlan& draft) {
  const int workers = WorkerCount(problem_.schedule);
  std::vector<Bytes> unparked(static_cast<size_t>(workers));
  draft.lenders.assign(static_cast<size_t>(workers), {});
  ParkingDemand demand;
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> peaks, OwnPeaks(draft));
  for (int worker = 0; worker < workers; ++worker) {
    const Bytes free = CapacityOf(worker) - peaks[worker] - withheld.workers[worker];
    demand.workers.push_back(
        {.parked = ParkedBy(draft, worker), .lendable = std::max(Bytes(0), free)});
  }
  if (!MayLend()) {
    for (int worker = 0; worker < workers; ++worker) {
      unparked[worker] = demand.workers[worker].parked;
    }
    return unparked;
  }
  SIPHON_ASSIGN_OR_RETURN(
      const ParkingAssignment assignment,
      AssignParking(LendingTopology(withheld), draft.mapping, demand, problem_.granule));
  draft.lenders = LendersOf(assignment);
  for (int worker = 0; worker < workers; ++worker) {
    unparked[worker] = assignment.owners[worker].unparked;
  }
  return unparked;
}

}  // namespace siphon
