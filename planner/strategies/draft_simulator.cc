#include "planner/strategies/draft_simulator.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/mapping/assign_parking.h"
#include "planner/status.h"
#include "planner/strategies/make_groups.h"

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

}  // namespace

bool Fits(const SimulatedDraft& simulated) { return simulated.score.excess == Bytes(0); }

DraftSimulator::DraftSimulator(const PlanningProblem& problem)
    : problem_(problem), away_(MostAway(problem.schedule)), known_(problem) {}

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

absl::StatusOr<SimulatedDraft> DraftSimulator::Simulated(DraftPlan draft) {
  ++simulations_;
  SimulatedDraft result{.draft = std::move(draft)};
  result.memory = PlanOf(problem_, result.draft);
  SIPHON_ASSIGN_OR_RETURN(
      result.schedule, LowerMemoryPlan(problem_.schedule, result.memory, LoweringOf(result.draft)));
  SIPHON_ASSIGN_OR_RETURN(StepTimes times,
                          known_.Run(result.draft.mapping, result.memory, result.schedule));
  result.simulated = std::move(times.step);
  return result;
}

absl::StatusOr<SimulatedDraft> DraftSimulator::Run(DraftPlan draft) {
  std::vector<Bytes> unparked(static_cast<size_t>(WorkerCount(problem_.schedule)));
  if (Uses(draft, Placement::kPeerSwap)) {
    SIPHON_ASSIGN_OR_RETURN(unparked, AssignLenders(draft));
  }
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft result, Simulated(std::move(draft)));
  const std::vector<Bytes> peaks = PeaksOf(result.simulated);
  for (size_t worker = 0; worker < peaks.size(); ++worker) {
    const Bytes capacity = CapacityOf(static_cast<int>(worker));
    Bytes excess = unparked[worker];
    if (capacity > Bytes(0)) excess += std::max(Bytes(0), peaks[worker] - capacity);
    result.excess.push_back(excess);
    result.score.excess += excess;
  }
  result.score.step = result.simulated.step_time;
  return result;
}

absl::StatusOr<std::vector<Bytes>> DraftSimulator::OwnPeaks(const DraftPlan& draft) {
  DraftPlan kept = Replace(draft, Placement::kPeerSwap, Placement::kKeep);
  kept.lenders.assign(kept.lenders.size(), {});
  if (kept == kept_) return kept_peaks_;
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
    for (int layer = layers.begin; layer < layers.end; ++layer) {
      const auto bytes = [&](GroupKind kind) {
        return GroupOf(problem_.profile, layers, kind, {layer, layer + 1}).bytes;
      };
      if (decided.activations[layer - layers.begin] == Placement::kPeerSwap) {
        parked += bytes(GroupKind::kActivations) * away_[stage.value];
      }
      if (decided.optimizer_state[layer - layers.begin] == Placement::kPeerSwap) {
        parked += bytes(GroupKind::kOptimizerState);
      }
    }
  }
  return parked;
}

absl::StatusOr<std::vector<Bytes>> DraftSimulator::AssignLenders(DraftPlan& draft) {
  const int workers = WorkerCount(problem_.schedule);
  std::vector<Bytes> unparked(static_cast<size_t>(workers));
  draft.lenders.assign(static_cast<size_t>(workers), {});
  ParkingDemand demand;
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> peaks, OwnPeaks(draft));
  for (int worker = 0; worker < workers; ++worker) {
    const Bytes free = CapacityOf(worker) - peaks[worker];
    demand.workers.push_back(
        {.parked = ParkedBy(draft, worker), .lendable = std::max(Bytes(0), free)});
  }
  // Devices lend to workers, not to replicas of them, which would all have to share one plan.
  if (DeviceCount(problem_.topology) == 0 || problem_.schedule.replicas > 1) {
    for (int worker = 0; worker < workers; ++worker) {
      unparked[worker] = demand.workers[worker].parked;
    }
    return unparked;
  }
  SIPHON_ASSIGN_OR_RETURN(
      const ParkingAssignment assignment,
      AssignParking(problem_.topology, draft.mapping, demand, problem_.granule));
  for (int worker = 0; worker < workers; ++worker) {
    unparked[worker] = assignment.owners[worker].unparked;
    for (const Stripe& stripe : assignment.owners[worker].stripes) {
      draft.lenders[worker].push_back({stripe.lender, stripe.bytes.value});
    }
  }
  return unparked;
}

}  // namespace siphon
