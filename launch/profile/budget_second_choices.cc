#include "launch/profile/budget_second_choices.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "launch/profile/host_use.h"
#include "planner/simulator/simulate_times.h"
#include "planner/status.h"
#include "planner/strategies/spare_lending.h"
#include "planner/strategies/take_second_choices.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

bool WouldGo(const PlannedGroup& planned, Placement second) {
  return IsSwap(planned.choice.placement) && planned.choice.second_choice == second;
}

template <typename Change>
void ForSwapped(MemoryPlan& plan, const Change& change) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (PlannedGroup& planned : plan.stages[stage].groups) {
      if (IsSwap(planned.choice.placement)) change(stage, planned);
    }
  }
}

// Of a place that cannot be.
Placement InsteadOf(const PlannedGroup& planned) {
  return planned.group.kind == GroupKind::kActivations ? Placement::kRecompute : Placement::kKeep;
}

// Where all that may go to the host would be there, with what the host has for other things.
absl::StatusOr<Bytes> HostBytesAtMost(const LiveStep& live, const MemoryPlan& plan) {
  SIPHON_ASSIGN_OR_RETURN(
      const FollowedPlan taken,
      TakeSecondChoices({plan, live.step.schedule}, [](StageId, const PlannedGroup& planned) {
        return WouldGo(planned, Placement::kHostSwap);
      }));
  std::vector<WorkerParking> moved;
  for (const WorkerParking& worker : live.parking) {
    moved.push_back(MoveParking(worker, taken.memory));
  }
  // Buffers of drives stay, whatever leaves these.
  return HostBytes(moved) + HostUseOf(live.parking, live.host_steps).total() -
         HostBytes(live.parking);
}

// [worker]: its fullest moment, without what it lends.
absl::StatusOr<std::vector<Bytes>> OwnPeaks(const LiveStep& live, const FollowedPlan& plan,
                                            const std::vector<MemoryByKind>& held) {
  PlanningProblem problem = live.problem;
  problem.capacity.clear();
  problem.topology.host_memory = Bytes(0);
  problem.held = held;
  SIPHON_ASSIGN_OR_RETURN(
      const StepTimes times,
      SimulateTimes(SimulationOf(problem, live.step.mapping, plan.memory, plan.schedule),
                    LendingDetail::kLent));
  std::vector<Bytes> peaks;
  for (const std::vector<Bytes>& own : times.lent.own) {
    peaks.push_back(*std::max_element(own.begin(), own.end()));
  }
  return peaks;
}

// Groups that have no second choice go to lenders, as far as these have memory left.
void LendToTheRestOf(const LiveStep& live, MemoryPlan& plan) {
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : live.step.simulated.peak) peaks.push_back(Total(peak));
  const std::vector<WorkerId>& worker_of_stage = live.problem.schedule.worker_of_stage;
  const auto times = [&](StageId stage, GroupId group) {
    const auto& slots = live.parking[worker_of_stage[stage.value].value].slots;
    const auto found = slots.find({stage, group});
    return found == slots.end() ? int64_t{0} : static_cast<int64_t>(found->second.size());
  };
  LendToTheRest(worker_of_stage, times,
                SpareLending(live.problem.topology, live.step.mapping, live.problem.capacity, peaks,
                             plan, worker_of_stage),
                plan);
}

// Whether each worker's memory is enough when its groups of these tiers are computed again.
class RecomputeRoom {
 public:
  static absl::StatusOr<RecomputeRoom> Make(const LiveStep& live,
                                            const std::vector<MemoryByKind>& held_to_recompute) {
    SIPHON_ASSIGN_OR_RETURN(
        std::vector<Bytes> own,
        OwnPeaks(live, {live.step.memory, live.step.schedule}, live.problem.held));
    return RecomputeRoom(live, held_to_recompute, std::move(own));
  }

  // Takes away from `fits` the workers whose memory is not.
  absl::Status Try(const MemoryPlan& plan, const std::vector<Placement>& tiers,
                   std::vector<bool>& fits) const {
    const auto concerned = [&](StageId, const PlannedGroup& planned) {
      return WouldGo(planned, Placement::kRecompute) &&
             std::find(tiers.begin(), tiers.end(), planned.choice.placement) != tiers.end();
    };
    SIPHON_ASSIGN_OR_RETURN(const FollowedPlan taken,
                            TakeSecondChoices({plan, live_.step.schedule}, concerned));
    if (taken.memory == plan) return absl::OkStatus();
    if (!ValidateSchedule(taken.schedule, SchedulePurpose::kTraining, taken.memory).ok()) {
      fits.assign(fits.size(), false);
      return absl::OkStatus();
    }
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> peaks, OwnPeaks(live_, taken, held_));
    for (size_t worker = 0; worker < fits.size(); ++worker) {
      const Bytes capacity =
          live_.problem.capacity.empty() ? Bytes(0) : live_.problem.capacity[worker];
      // What it lends counts in its planned peak.
      const Bytes needed = Total(live_.step.simulated.peak[worker]) + peaks[worker] - own_[worker];
      if (capacity > Bytes(0) && needed > capacity) fits[worker] = false;
    }
    return absl::OkStatus();
  }

 private:
  RecomputeRoom(const LiveStep& live, const std::vector<MemoryByKind>& held, std::vector<Bytes> own)
      : live_(live), held_(held), own_(std::move(own)) {}

  const LiveStep& live_;
  const std::vector<MemoryByKind>& held_;
  const std::vector<Bytes> own_;  // [worker], by the plan as it is
};

}  // namespace

absl::StatusOr<MemoryPlan> BudgetSecondChoices(const LiveStep& live,
                                               const std::vector<MemoryByKind>& held_to_recompute) {
  MemoryPlan plan = live.step.memory;
  // A worker's file is as large as its plan has it, so that nothing else can go there.
  ForSwapped(plan, [](size_t, PlannedGroup& planned) {
    const Placement second = planned.choice.second_choice;
    if (second != Placement::kNvmeSwap && second != Placement::kPeerSwap) return;
    planned.choice.second_choice = InsteadOf(planned);
  });
  SIPHON_ASSIGN_OR_RETURN(const Bytes on_host, HostBytesAtMost(live, plan));
  const Bytes room = live.problem.topology.host_memory;
  if (room > Bytes(0) && on_host > room) {
    ForSwapped(plan, [](size_t, PlannedGroup& planned) {
      if (planned.choice.second_choice != Placement::kHostSwap) return;
      planned.choice.second_choice = InsteadOf(planned);
    });
  }
  SIPHON_ASSIGN_OR_RETURN(const RecomputeRoom recompute,
                          RecomputeRoom::Make(live, held_to_recompute));
  std::vector<bool> fits(live.parking.size(), true);
  const std::vector<Placement> tiers = {Placement::kPeerSwap, Placement::kNvmeSwap,
                                        Placement::kHostSwap};
  for (const Placement tier : tiers) SIPHON_RETURN_IF_ERROR(recompute.Try(plan, {tier}, fits));
  SIPHON_RETURN_IF_ERROR(recompute.Try(plan, tiers, fits));
  ForSwapped(plan, [&](size_t stage, PlannedGroup& planned) {
    const WorkerId worker = live.problem.schedule.worker_of_stage[stage];
    if (planned.choice.second_choice == Placement::kRecompute && !fits[worker.value]) {
      planned.choice.second_choice = Placement::kKeep;
    }
  });
  LendToTheRestOf(live, plan);
  return plan;
}

}  // namespace siphon
