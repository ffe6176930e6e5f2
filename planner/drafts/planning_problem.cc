#include "planner/drafts/planning_problem.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/layer_cost.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status CheckPartition(const PlanningProblem& problem) {
  const int stages = StageCount(problem.schedule);
  if (static_cast<int>(problem.partition.stages.size()) != stages) {
    return absl::InvalidArgumentError(absl::StrCat("the partition has ",
                                                   problem.partition.stages.size(),
                                                   " stages, but the schedule has ", stages));
  }
  int next = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const StageRange& layers = problem.partition.stages[stage];
    if (layers.begin != next || layers.end <= layers.begin) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage, " has layers ", layers.begin,
                                                     " to ", layers.end - 1,
                                                     ", but the next layer is ", next));
    }
    next = layers.end;
  }
  if (next == static_cast<int>(problem.profile.layers.size())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the partition has ", next, " layers, but the profile has ", problem.profile.layers.size()));
}

absl::Status CheckWorkers(const PlanningProblem& problem) {
  const auto check = [&](size_t size, absl::string_view what) -> absl::Status {
    const auto workers = static_cast<size_t>(WorkerCount(problem.schedule));
    if (size == 0 || size == workers) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", size, " ", what, " for ", workers, " workers"));
  };
  SIPHON_RETURN_IF_ERROR(check(problem.capacity.size(), "capacities"));
  return check(problem.held.size(), "books of what is held");
}

absl::Status CheckDevices(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckTopology(problem.topology));
  const int workers = WorkerCount(problem.schedule) * problem.schedule.replicas;
  const int devices = DeviceCount(problem.topology);
  if (devices > 0 && devices < workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("the topology has ", devices, " devices for ", workers, " workers"));
  }
  if (!problem.mapping) return absl::OkStatus();
  const auto mapped = static_cast<int>(problem.mapping->device_of_worker.size());
  if (mapped == workers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the mapping has ", mapped, " devices for ", workers, " workers"));
}

}  // namespace

absl::Status CheckPlanningProblem(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPartition(problem));
  SIPHON_RETURN_IF_ERROR(CheckWorkers(problem));
  if (problem.granule <= Bytes(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("stripes of ", problem.granule.value, " bytes; 1 is the least"));
  }
  return CheckDevices(problem);
}

namespace {

// Every stage takes the part of the host's step that its optimizer state is of all.
std::vector<Nanos> HostSteps(Nanos all, const std::vector<StageCost>& stages) {
  absl::int128 state = 0;
  for (const StageCost& stage : stages) state += stage.optimizer_state.value;
  std::vector<Nanos> steps;
  for (const StageCost& stage : stages) {
    const absl::int128 part = absl::int128(all.value) * stage.optimizer_state.value;
    steps.emplace_back(state == 0 ? 0 : static_cast<int64_t>((part + state - 1) / state));
  }
  return steps;
}

}  // namespace

SimulationInput SimulationOf(const PlanningProblem& problem, const DeviceMapping& mapping,
                             MemoryPlan memory, Schedule schedule) {
  std::vector<StageCost> stages = StageCosts(problem.profile, problem.partition);
  std::vector<Nanos> host_step = HostSteps(problem.host_step, stages);
  return {.schedule = std::move(schedule),
          .stages = std::move(stages),
          .layers = LayerCosts(problem.profile, problem.partition),
          .topology = problem.topology,
          .device_of_worker = mapping.device_of_worker,
          .transport = problem.transport,
          .cores = problem.cores,
          .memory = std::move(memory),
          .host_step = std::move(host_step),
          .capacity = problem.capacity,
          .held = problem.held,
          .frees_at_waits = problem.lending == LendingRule::kPeaks};
}

}  // namespace siphon
