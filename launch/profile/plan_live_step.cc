#include "launch/profile/plan_live_step.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/simulator/simulate_times.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Each makes room for what the layout of the one before took beyond the planner's figures: copies
// of a group that are away at once by the program's order and not by its clock, and slots that
// begin at cache lines.
constexpr int kMostRounds = 6;

void Hold(LayerProfile& layer, MemoryByKind& held) {
  held[MemoryKind::kParameters] += std::exchange(layer.parameters, Bytes(0));
  held[MemoryKind::kGradients] += std::exchange(layer.gradients, Bytes(0));
  held[MemoryKind::kOptimizer] += std::exchange(layer.optimizer_state, Bytes(0));
}

// What is held has no bytes for a strategy to move.
PlanningProblem MovingActivationsAlone(PlanningProblem problem) {
  for (size_t stage = 0; stage < problem.partition.stages.size(); ++stage) {
    const StageRange& layers = problem.partition.stages[stage];
    MemoryByKind& held = problem.held[problem.schedule.worker_of_stage[stage].value];
    for (int layer = layers.begin; layer < layers.end; ++layer) {
      Hold(problem.profile.layers[layer], held);
    }
  }
  problem.host_step = Nanos(0);
  problem.lending = LendingRule::kPeaks;
  return problem;
}

// What each worker lends: [worker].
std::vector<Bytes> LentByWorkers(const LiveStep& live) {
  std::vector<Bytes> lent;
  for (const DeviceId device : live.step.mapping.device_of_worker) {
    lent.push_back(LentBytes(live.parking, device));
  }
  return lent;
}

// [worker]: its fullest moment, without what it lends.
absl::StatusOr<std::vector<Bytes>> OwnPeaks(const LiveStep& live) {
  SIPHON_ASSIGN_OR_RETURN(const StepTimes times,
                          SimulateTimes(SimulationOf(live.problem, live.step.mapping,
                                                     live.step.memory, live.step.schedule),
                                        LendingDetail::kLent));
  std::vector<Bytes> peaks;
  for (const std::vector<Bytes>& own : times.lent.own) {
    peaks.push_back(*std::max_element(own.begin(), own.end()));
  }
  return peaks;
}

absl::Status NoRoomToLend(size_t worker, Bytes own, Bytes lent, Bytes capacity) {
  return absl::ResourceExhaustedError(
      absl::StrCat("worker ", worker, " needs ", FormatBytes(own), " itself and would lend ",
                   FormatBytes(lent), ", its capacity is ", FormatBytes(capacity), ", ",
                   FormatBytes(own + lent - capacity), " less"));
}

absl::Status NoRoomOnHost(Bytes parked, Bytes room) {
  return absl::ResourceExhaustedError(absl::StrCat("the workers park ", FormatBytes(parked),
                                                   " with the host, which has room for ",
                                                   FormatBytes(room)));
}

absl::Status NoRoomOnDrive(Bytes parked, Bytes room) {
  return absl::ResourceExhaustedError(absl::StrCat("the workers park ", FormatBytes(parked),
                                                   " on the drive, which has room for ",
                                                   FormatBytes(room)));
}

// Likewise, on the drive that all workers share.
absl::Status CheckRoomOnDrive(const LiveStep& live, PlanningProblem& planned) {
  if (live.problem.topology.drives.empty()) return absl::OkStatus();
  const Bytes room = live.problem.topology.drives[0].capacity;
  const Bytes missing = DriveBytes(live.parking) - room;
  if (room == Bytes(0) || missing <= Bytes(0)) return absl::OkStatus();
  Bytes& left = planned.topology.drives[0].capacity;
  left = std::max(left - missing, Bytes(1));  // 0 would be no limit
  return NoRoomOnDrive(DriveBytes(live.parking), room);
}

// OK where all that is parked has its room all the time. Otherwise `planned` leaves so much more,
// for another plan.
absl::Status CheckRoom(const LiveStep& live, const std::vector<Bytes>& own,
                       PlanningProblem& planned) {
  absl::Status status;
  const std::vector<Bytes> lent = LentByWorkers(live);
  for (size_t worker = 0; worker < own.size(); ++worker) {
    if (live.problem.capacity.empty() || lent[worker] == Bytes(0)) continue;
    const Bytes capacity = live.problem.capacity[worker];
    const Bytes missing = own[worker] + lent[worker] - capacity;
    if (capacity == Bytes(0) || missing <= Bytes(0)) continue;
    planned.held[worker][MemoryKind::kActivations] += missing;
    if (status.ok()) status = NoRoomToLend(worker, own[worker], lent[worker], capacity);
  }
  status.Update(CheckRoomOnDrive(live, planned));
  const Bytes room = live.problem.topology.host_memory;
  const Bytes missing = HostBytes(live.parking) - room;
  if (room == Bytes(0) || missing <= Bytes(0)) return status;
  planned.topology.host_memory =
      std::max(planned.topology.host_memory - missing, Bytes(1));  // 0 would be no limit
  return NoRoomOnHost(HostBytes(live.parking), room);
}

// Lent memory that nobody uses at a lender's fullest moment is held there.
absl::StatusOr<LiveStep> WithLentMemoryHeld(LiveStep live, const std::vector<Bytes>& own) {
  const std::vector<Bytes> lent = LentByWorkers(live);
  SIPHON_ASSIGN_OR_RETURN(const StepTimes times,
                          SimulateTimes(SimulationOf(live.problem, live.step.mapping,
                                                     live.step.memory, live.step.schedule)));
  for (size_t worker = 0; worker < own.size(); ++worker) {
    live.problem.held[worker][MemoryKind::kActivations] +=
        own[worker] + lent[worker] - Total(times.step.peak[worker]);
  }
  SIPHON_ASSIGN_OR_RETURN(live.step.simulated,
                          Simulate(SimulationOf(live.problem, live.step.mapping, live.step.memory,
                                                live.step.schedule)));
  return live;
}

}  // namespace

absl::StatusOr<LiveStep> PlanLiveStep(PlanningProblem problem, const MemoryStrategy& strategy) {
  SIPHON_CHECK(problem.schedule.replicas == 1, "workers run one replica");
  problem.held.resize(WorkerCount(problem.schedule));
  PlanningProblem planned = MovingActivationsAlone(problem);
  LiveStep live{.problem = std::move(problem)};
  absl::Status room;
  for (int round = 0; round < kMostRounds; ++round) {
    absl::StatusOr<PlannedStep> step = strategy.plan(planned);
    if (!step.ok()) return room.ok() ? step.status() : room;
    live.step = *std::move(step);
    SIPHON_ASSIGN_OR_RETURN(live.parking, LayOutParking(live.step.memory, live.step.schedule));
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> own, OwnPeaks(live));
    room = CheckRoom(live, own, planned);
    if (room.ok()) return WithLentMemoryHeld(std::move(live), own);
  }
  return room;
}

}  // namespace siphon
