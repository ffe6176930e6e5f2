#include "planner/second_choices/host_room_on_drives.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "planner/drafts/promised_peaks.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"
#include "planner/topology.h"

namespace siphon {
namespace {

Bytes StateOf(const LayerProfile& layer) {
  return layer.optimizer_state + layer.parameters + layer.shared_parameters + layer.gradients +
         layer.shared_gradients;
}

bool StaysOfLayer(const StagePlan& stage, int layer) {
  return StepsOnHost(stage, layer) ||
         absl::c_any_of(stage.groups, [&](const PlannedGroup& planned) {
           return Contains(planned.group.layers, layer) && StaysForHostStep(stage, planned);
         });
}

// [worker]: what the host has for its steps there, where a group of it could say what else does.
std::vector<Bytes> HostRooms(const PlanningProblem& problem, const MemoryPlan& plan) {
  std::vector<Bytes> rooms(WorkerCount(problem.schedule));
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const StagePlan& planned = plan.stages[stage];
    const StageRange& layers = problem.partition.stages[stage];
    for (int layer = layers.begin; layer < layers.end; ++layer) {
      if (!StaysOfLayer(planned, layer)) continue;
      rooms[problem.schedule.worker_of_stage[stage].value] +=
          StateOf(problem.profile.layers[layer]);
    }
  }
  return rooms;
}

// What drives have left beside the plan and what may come to them from elsewhere.
class RoomOnDrives {
 public:
  RoomOnDrives(const PlanningProblem& problem, const DeviceMapping& mapping,
               std::vector<Bytes> taken)
      : problem_(problem), mapping_(mapping), taken_(std::move(taken)) {}

  // Of each replica's worker; whether all of them have it.
  bool Take(size_t worker, Bytes bytes) {
    const Topology& topology = problem_.topology;
    const auto workers = static_cast<size_t>(WorkerCount(problem_.schedule));
    std::vector<Bytes> then = taken_;
    for (int replica = 0; replica < problem_.schedule.replicas; ++replica) {
      const DeviceId device = mapping_.device_of_worker[replica * workers + worker];
      const auto drive = static_cast<size_t>(DriveOf(topology, device));
      then[drive] += bytes;
      const Bytes capacity = topology.drives[drive].capacity;
      if (capacity > Bytes(0) && then[drive] > capacity) return false;
    }
    taken_ = std::move(then);
    return true;
  }

 private:
  const PlanningProblem& problem_;
  const DeviceMapping& mapping_;
  std::vector<Bytes> taken_;  // [drive]
};

}  // namespace

absl::StatusOr<MemoryPlan> WithHostRoomOnDrives(const PlanningProblem& problem,
                                                const DeviceMapping& mapping, FollowedPlan plan) {
  if (problem.topology.drives.empty()) return std::move(plan.memory);
  const std::vector<Bytes> rooms = HostRooms(problem, plan.memory);
  if (absl::c_all_of(rooms, [](Bytes room) { return room == Bytes(0); })) {
    return std::move(plan.memory);
  }
  const auto to_drives = [](StageId, const PlannedGroup& planned) {
    return WouldGo(planned, Placement::kNvmeSwap);
  };
  SIPHON_ASSIGN_OR_RETURN(const FollowedPlan taken, TakeSecondChoices(plan, to_drives));
  RoomOnDrives left(problem, mapping,
                    ParkedAtMostBy(problem, mapping, taken.memory, taken.schedule).with_drive);
  std::vector<bool> has_room(rooms.size());
  for (size_t worker = 0; worker < rooms.size(); ++worker) {
    has_room[worker] = rooms[worker] > Bytes(0) && left.Take(worker, rooms[worker]);
  }
  for (size_t stage = 0; stage < plan.memory.stages.size(); ++stage) {
    StagePlan& planned = plan.memory.stages[stage];
    if (!has_room[problem.schedule.worker_of_stage[stage].value]) continue;
    for (PlannedGroup& group : planned.groups) {
      if (StaysForHostStep(planned, group)) group.choice.second_choice = Placement::kNvmeSwap;
    }
  }
  return std::move(plan.memory);
}

}  // namespace siphon
