#include "launch/profile/budget_second_choices.h"

#include <cstddef>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "launch/profile/host_use.h"
#include "planner/second_choices/computing_again.h"
#include "planner/second_choices/spare_lending.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/status.h"

namespace siphon {
namespace {

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

// Where all that may go to the host would be there, with what the host has for other things: of the
// fullest server.
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
  const auto uses = [&](const std::vector<WorkerParking>& parking) {
    return HostUseOfServers(parking, live.host_steps, live.problem.topology, live.step.mapping);
  };
  // Buffers of drives stay, whatever leaves these.
  std::vector<HostUse> now = uses(live.parking);
  const std::vector<HostUse> then = uses(moved);
  for (size_t server = 0; server < now.size(); ++server) now[server].parked = then[server].parked;
  return FullestHost(now).total();
}

// The workers whose steps on the host have room on the drive, which all of them share.
std::set<WorkerId> WithHostRoomOnDrive(const LiveStep& live) {
  std::set<WorkerId> with;
  if (live.problem.topology.drives.empty()) return with;
  const Bytes capacity = live.problem.topology.drives[0].capacity;
  const std::vector<Bytes> rooms =
      HostRoomsForDrives({live.step.memory, live.step.schedule}, live.parking, live.host_steps);
  Bytes taken = DriveBytes(live.parking);
  for (size_t worker = 0; worker < rooms.size(); ++worker) {
    const Bytes then = taken + rooms[worker];
    if (rooms[worker] == Bytes(0) || (capacity > Bytes(0) && then > capacity)) continue;
    taken = then;
    with.insert(WorkerId(static_cast<int>(worker)));
  }
  return with;
}

// Groups that have no second choice go to lenders, as far as these have memory left.
void LendToTheRestOf(const LiveStep& live, const std::vector<Bytes>& peaks, MemoryPlan& plan) {
  const std::vector<WorkerId>& worker_of_stage = live.problem.schedule.worker_of_stage;
  const auto times = [&](StageId stage, GroupId group) {
    const auto& slots = live.parking[worker_of_stage[stage.value].value].slots;
    const auto found = slots.find({stage, group});
    return found == slots.end() ? int64_t{0} : static_cast<int64_t>(found->second.size());
  };
  LendToTheRest(worker_of_stage, times,
                SpareLending(live.problem.topology, live.step.mapping, live.problem.capacity, peaks,
                             live.problem.granule),
                plan);
}

// Takes computing again away from workers whose memory is not enough for it, until it is for all
// others. Returns [worker]: what each holds at most.
absl::StatusOr<std::vector<Bytes>> LeaveRoomToComputeAgain(
    const LiveStep& live, const std::vector<MemoryByKind>& held_to_recompute, MemoryPlan& plan) {
  const std::vector<Bytes> planned = TotalPeaks(live.step.simulated);
  while (true) {
    const auto peaks = PeaksComputingAgain(live.problem, live.step.mapping,
                                           {plan, live.step.schedule}, planned, held_to_recompute);
    const bool possible = !absl::IsFailedPrecondition(peaks.status());
    if (possible) SIPHON_RETURN_IF_ERROR(peaks.status());
    const auto fits = [&](WorkerId worker) {
      const Bytes capacity =
          live.problem.capacity.empty() ? Bytes(0) : live.problem.capacity[worker.value];
      return possible && (capacity == Bytes(0) || (*peaks)[worker.value] <= capacity);
    };
    bool changed = false;
    ForSwapped(plan, [&](size_t stage, PlannedGroup& group) {
      const WorkerId worker = live.problem.schedule.worker_of_stage[stage];
      if (group.choice.second_choice != Placement::kRecompute || fits(worker)) return;
      group.choice.second_choice = Placement::kKeep;
      changed = true;
    });
    if (!changed) return possible ? *peaks : planned;
  }
}

}  // namespace

absl::StatusOr<BudgetedPlan> BudgetSecondChoices(
    const LiveStep& live, const std::vector<MemoryByKind>& held_to_recompute) {
  MemoryPlan plan = live.step.memory;
  const std::set<WorkerId> on_drive = WithHostRoomOnDrive(live);
  // A worker's file is as large as its plan has it, so that nothing else can go there.
  ForSwapped(plan, [&](size_t stage, PlannedGroup& planned) {
    const Placement second = planned.choice.second_choice;
    const WorkerId worker = live.problem.schedule.worker_of_stage[stage];
    if (StaysForHostStep(live.step.memory.stages[stage], planned) && on_drive.contains(worker)) {
      return;
    }
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
  SIPHON_ASSIGN_OR_RETURN(std::vector<Bytes> peaks,
                          LeaveRoomToComputeAgain(live, held_to_recompute, plan));
  LendToTheRestOf(live, peaks, plan);
  return BudgetedPlan{std::move(plan), std::move(peaks)};
}

}  // namespace siphon
