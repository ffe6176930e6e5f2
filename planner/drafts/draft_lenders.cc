#include "planner/drafts/draft_lenders.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "planner/lowering/make_groups.h"
#include "planner/mapping/assign_over_time.h"
#include "planner/mapping/assign_parking.h"
#include "planner/status.h"

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

// Bytes a second; stands for a pair without a limit.
constexpr int64_t kFastestPair = 1'000'000'000'000;

}  // namespace

DraftLenders::DraftLenders(const PlanningProblem& problem)
    : problem_(problem),
      away_(MostAway(problem.schedule)),
      versions_(PeakWeightVersions(problem.schedule)),
      fabric_(MakeSwapFabric(problem.topology)) {}

bool DraftLenders::MayLend() const {
  return DeviceCount(problem_.topology) > 0 && problem_.schedule.replicas == 1;
}

Bytes DraftLenders::CapacityOf(int worker) const {
  return problem_.capacity.empty() ? Bytes(0) : problem_.capacity[worker];
}

Bytes DraftLenders::ParkedBy(const DraftPlan& draft, int worker) const {
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

std::vector<Bytes> DraftLenders::NotGiven(const DraftPlan& draft) const {
  std::vector<Bytes> bytes;
  for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
    bytes.push_back(draft.lenders[worker].empty() ? ParkedBy(draft, worker) : Bytes(0));
  }
  return bytes;
}

bool DraftLenders::GiveToAll(DraftPlan& draft) const {
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

WithheldMemory DraftLenders::WithheldNothing() const {
  return {.workers = std::vector<Bytes>(static_cast<size_t>(WorkerCount(problem_.schedule))),
          .idle = std::vector<Bytes>(problem_.topology.devices.size())};
}

std::vector<Bytes> DraftLenders::IdleExcess(const SimulatedStep& step) const {
  std::vector<Bytes> excess;
  for (int device = 0; device < DeviceCount(problem_.topology); ++device) {
    const Bytes memory = problem_.topology.devices[device].memory;
    const Bytes peak = PeakOfIdleDevice(step, DeviceId(device));
    excess.push_back(memory > Bytes(0) ? std::max(Bytes(0), peak - memory) : Bytes(0));
  }
  return excess;
}

bool DraftLenders::WithholdIdle(const SimulatedStep& step, WithheldMemory& withheld) const {
  const std::vector<Bytes> excess = IdleExcess(step);
  bool any = false;
  for (size_t device = 0; device < excess.size(); ++device) {
    withheld.idle[device] += excess[device];
    any |= excess[device] > Bytes(0);
  }
  return any;
}

SwapFabric DraftLenders::FabricLess(const WithheldMemory& withheld) const {
  SwapFabric fabric = fabric_;
  for (int device = 0; device < fabric.devices; ++device) {
    int64_t& memory = fabric.memory[device];
    memory = std::max<int64_t>(0, memory - withheld.idle[device].value);
  }
  return fabric;
}

std::vector<std::vector<Bytes>> DraftLenders::LendableOf(const LentMemory& lent,
                                                         const std::vector<Bytes>& withheld) const {
  std::vector<std::vector<Bytes>> lendable;
  for (size_t worker = 0; worker < lent.own.size(); ++worker) {
    const Bytes room = CapacityOf(static_cast<int>(worker)) - withheld[worker];
    std::vector<Bytes>& curve = lendable.emplace_back();
    for (const Bytes own : lent.own[worker]) curve.push_back(std::max(Bytes(0), room - own));
  }
  return lendable;
}

ParkingDemand DraftLenders::DemandOf(const std::vector<Bytes>& own_peaks,
                                     const WithheldMemory& withheld, const DraftPlan& draft) const {
  ParkingDemand demand;
  for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
    const Bytes free = CapacityOf(worker) - own_peaks[worker] - withheld.workers[worker];
    demand.workers.push_back(
        {.parked = ParkedBy(draft, worker), .lendable = std::max(Bytes(0), free)});
  }
  return demand;
}

absl::StatusOr<std::vector<Bytes>> DraftLenders::Assign(const std::vector<Bytes>& own_peaks,
                                                        const WithheldMemory& withheld,
                                                        DraftPlan& draft) const {
  const int workers = WorkerCount(problem_.schedule);
  std::vector<Bytes> unparked(static_cast<size_t>(workers));
  draft.lenders.assign(static_cast<size_t>(workers), {});
  const ParkingDemand demand = DemandOf(own_peaks, withheld, draft);
  if (!MayLend()) {
    for (int worker = 0; worker < workers; ++worker) {
      unparked[worker] = demand.workers[worker].parked;
    }
    return unparked;
  }
  SIPHON_RETURN_IF_ERROR(CheckParkingDemand(demand, problem_.topology));
  const ParkingAssignment assignment =
      AssignParkingOn(FabricLess(withheld), draft.mapping, demand, problem_.granule);
  draft.lenders = LendersOf(assignment);
  for (int worker = 0; worker < workers; ++worker) {
    unparked[worker] = assignment.owners[worker].unparked;
  }
  return unparked;
}

absl::StatusOr<bool> DraftLenders::AssignOverTime(const LentMemory& lent,
                                                  const WithheldMemory& withheld,
                                                  DraftPlan& draft) const {
  SIPHON_ASSIGN_OR_RETURN(
      const ParkingAssignment assignment,
      AssignParkingOverTime(FabricLess(withheld), draft.mapping,
                            {lent.parked, LendableOf(lent, withheld.workers)}, problem_.granule));
  if (assignment.unparked > Bytes(0)) return false;
  draft.lenders = LendersOf(assignment);
  return true;
}

}  // namespace siphon
