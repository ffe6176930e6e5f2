#include "launch/profile/plan_live_step.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/profile/host_use.h"
#include "launch/profile/moving_state.h"
#include "planner/simulator/simulate_times.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Each makes room for what the layout of the one before took beyond the planner's figures: copies
// of a group that are away at once by the program's order and not by its clock, slots that begin at
// cache lines, gradients of other stages. A plan may not be at its fullest where that is, so that
// little more room changes nothing: twice as much of it each round, and a part of the capacity.
constexpr int kMostRounds = 8;
constexpr int64_t kLeastPart = 512;
// Of what a host has room for as buffers of drives, so that something is left beside them; and what
// is not worth its buffers.
constexpr double kLessOnDrive = 0.75;
constexpr Bytes kLeastOnDrive(256 << 10);

// What each worker lends: [worker].
std::vector<Bytes> LentByWorkers(const LiveStep& live) {
  std::vector<Bytes> lent;
  for (const DeviceId device : live.step.mapping.device_of_worker) {
    lent.push_back(LentBytes(live.parking, device));
  }
  return lent;
}

// When the worker is through with all that it computes before its first REDUCE_GRAD; the step's end
// where it has none.
Nanos BeginOfReduction(const std::vector<Action>& program, const WorkerTimeline& timeline,
                       Nanos step_time) {
  const auto reduces = absl::c_find_if(
      program, [](const Action& action) { return action.kind == ActionKind::kReduceGradient; });
  if (reduces == program.end()) return step_time;
  const auto before = std::find_if(std::make_reverse_iterator(reduces), program.rend(),
                                   [](const Action& action) { return IsCompute(action.kind); });
  Nanos begin;
  for (const Interval& interval : timeline) {
    if (before != program.rend() && interval.action == *before) begin = interval.end;
  }
  return begin;
}

// The most of a curve of moments from `begin` on.
Bytes MostFrom(const std::vector<Bytes>& moments, Nanos begin, Nanos step_time) {
  const auto count = static_cast<int64_t>(moments.size());
  const int64_t first =
      step_time > Nanos(0) ? std::min(begin.value * count / step_time.value, count - 1) : 0;
  return *std::max_element(moments.begin() + first, moments.end());
}

// [worker]: its fullest moment, without what it lends, with shared gradients.
absl::StatusOr<std::vector<Bytes>> OwnPeaks(const LiveStep& live,
                                            const std::vector<Bytes>& shared_gradients) {
  const Schedule& schedule = live.step.schedule;
  SIPHON_ASSIGN_OR_RETURN(
      const StepTimes times,
      SimulateTimes(SimulationOf(live.problem, live.step.mapping, live.step.memory, schedule),
                    LendingDetail::kLent));
  std::vector<Bytes> peaks = OwnPeaks(times.lent);
  for (size_t worker = 0; worker < shared_gradients.size(); ++worker) {
    const Nanos begin = BeginOfReduction(schedule.programs[worker], times.step.workers[worker],
                                         times.step.step_time);
    const Bytes then = MostFrom(times.lent.own[worker], begin, times.step.step_time);
    peaks[worker] = std::max(peaks[worker], then + shared_gradients[worker]);
  }
  return peaks;
}

absl::Status NoRoomToLend(size_t worker, Bytes own, Bytes lent, Bytes capacity) {
  return absl::ResourceExhaustedError(
      absl::StrCat("worker ", worker, " needs ", FormatBytes(own), " itself and would lend ",
                   FormatBytes(lent), ", its capacity is ", FormatBytes(capacity), ", ",
                   FormatBytes(own + lent - capacity), " less"));
}

absl::Status NoRoomOnHost(const HostUse& use, Bytes room) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the workers have ", ToString(use), " on the host, which has room for ", FormatBytes(room)));
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

// Where the buffers of drives alone are too much for the host: less goes to drives, whose buffers
// go with that, or nothing.
void HaveFewerBuffers(Bytes buffers, Bytes room, Bytes on_drive, PlanningProblem& planned) {
  std::vector<NvmeDrive>& drives = planned.topology.drives;
  const double part = static_cast<double>(room.value) / static_cast<double>(buffers.value);
  const Bytes less(static_cast<int64_t>(static_cast<double>(on_drive.value) * part * kLessOnDrive));
  if (less < kLeastOnDrive) {
    drives.clear();
  } else {
    drives[0].capacity = less;
  }
}

// What the workers have of the host, all the time, where they have most.
HostUse UseOfHost(const LiveStep& live) {
  return FullestHost(
      HostUseOfServers(live.parking, live.host_steps, live.problem.topology, live.step.mapping));
}

// OK where all that is parked has its room all the time. Otherwise `planned` leaves so much more,
// `times` over, for another plan.
absl::Status CheckRoom(const LiveStep& live, const std::vector<Bytes>& own, int64_t times,
                       PlanningProblem& planned) {
  absl::Status status;
  const std::vector<Bytes> lent = LentByWorkers(live);
  for (size_t worker = 0; worker < own.size(); ++worker) {
    if (live.problem.capacity.empty()) continue;
    const Bytes capacity = live.problem.capacity[worker];
    const Bytes missing = own[worker] + lent[worker] - capacity;
    if (capacity == Bytes(0) || missing <= Bytes(0)) continue;
    planned.held[worker][MemoryKind::kLent] +=
        missing * times + Bytes(capacity.value / kLeastPart * (times - 1));
    if (status.ok()) status = NoRoomToLend(worker, own[worker], lent[worker], capacity);
  }
  status.Update(CheckRoomOnDrive(live, planned));
  const Bytes room = live.problem.topology.host_memory;
  const HostUse use = UseOfHost(live);
  const Bytes missing = use.total() - room;
  if (room == Bytes(0) || missing <= Bytes(0)) return status;
  if (use.drive_buffers >= room) {
    HaveFewerBuffers(use.drive_buffers, room, DriveBytes(live.parking), planned);
  } else {
    planned.topology.host_memory =
        std::max(planned.topology.host_memory - missing, Bytes(1));  // 0 would be no limit
  }
  return NoRoomOnHost(use, room);
}

// Lent memory that nobody uses at a lender's fullest moment is held there.
absl::StatusOr<LiveStep> WithLentMemoryHeld(LiveStep live, const std::vector<Bytes>& own) {
  const std::vector<Bytes> lent = LentByWorkers(live);
  SIPHON_ASSIGN_OR_RETURN(const StepTimes times,
                          SimulateTimes(SimulationOf(live.problem, live.step.mapping,
                                                     live.step.memory, live.step.schedule)));
  for (size_t worker = 0; worker < own.size(); ++worker) {
    live.problem.held[worker][MemoryKind::kLent] +=
        own[worker] + lent[worker] - Total(times.step.peak[worker]);
  }
  SIPHON_ASSIGN_OR_RETURN(live.step.simulated,
                          Simulate(SimulationOf(live.problem, live.step.mapping, live.step.memory,
                                                live.step.schedule)));
  live.step.simulated.host_peak = std::max(live.step.simulated.host_peak, UseOfHost(live).total());
  return live;
}

// What its groups take where they are parked, and its steps on the host.
absl::Status LayOutRoom(LiveStep& live, const MemoryInputs* inputs) {
  SIPHON_ASSIGN_OR_RETURN(live.parking, LayOutParking(live.step.memory, live.step.schedule));
  live.host_steps = HostStepBytes(live.problem, live.step.memory, inputs);
  return absl::OkStatus();
}

void PrepareProblem(PlanningProblem& problem) {
  SIPHON_CHECK(problem.schedule.replicas == 1, "workers run one replica");
  problem.held.resize(WorkerCount(problem.schedule));
  problem.lending = LendingRule::kPeaks;  // promises that hold at any speed
}

// By a few plans, each of which leaves more room than the one before; `room` says what the last one
// lacked.
absl::StatusOr<LiveStep> PlanInRounds(PlanningProblem problem, const MemoryStrategy& strategy,
                                      const std::vector<Bytes>& shared_gradients,
                                      const MemoryInputs* inputs, absl::Status& room) {
  PlanningProblem planned = problem;
  LiveStep live{.problem = std::move(problem)};
  for (int round = 0; round < kMostRounds; ++round) {
    absl::StatusOr<PlannedStep> step = strategy.plan(planned);
    if (!step.ok()) return room.ok() ? step.status() : room;
    live.step = *std::move(step);
    SIPHON_RETURN_IF_ERROR(LayOutRoom(live, inputs));
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> own, OwnPeaks(live, shared_gradients));
    room = CheckRoom(live, own, int64_t{1} << round, planned);
    if (room.ok()) return WithLentMemoryHeld(std::move(live), own);
  }
  return room;
}

}  // namespace

absl::StatusOr<LiveStep> LiveStepOf(PlanningProblem problem, PlannedStep step,
                                    const std::vector<Bytes>& shared_gradients,
                                    const MemoryInputs* inputs) {
  PrepareProblem(problem);
  LiveStep live{.problem = std::move(problem), .step = std::move(step)};
  SIPHON_RETURN_IF_ERROR(LayOutRoom(live, inputs));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> own, OwnPeaks(live, shared_gradients));
  PlanningProblem other = live.problem;  // nothing is planned for it
  SIPHON_RETURN_IF_ERROR(CheckRoom(live, own, /*times=*/1, other));
  return WithLentMemoryHeld(std::move(live), own);
}

absl::StatusOr<LiveStep> PlanLiveStep(PlanningProblem problem, const MemoryStrategy& strategy,
                                      const std::vector<Bytes>& shared_gradients,
                                      const MemoryInputs* inputs) {
  PrepareProblem(problem);
  absl::Status room;
  absl::StatusOr<LiveStep> live = PlanInRounds(problem, strategy, shared_gradients, inputs, room);
  if (room.ok() || problem.goal == PlanningGoal::kAnyThatFits) return live;
  // The shortest steps take all the room that their search knows of; the first plan that fits may
  // leave what it does not know of.
  problem.goal = PlanningGoal::kAnyThatFits;
  absl::Status still;
  absl::StatusOr<LiveStep> any =
      PlanInRounds(std::move(problem), strategy, shared_gradients, inputs, still);
  return any.ok() ? std::move(any) : std::move(live);
}

}  // namespace siphon
