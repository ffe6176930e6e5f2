#include "planner/drafts/promised_peaks.h"
#include "planner/round_up.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"
#include "planner/topology.h"

namespace siphon {
namespace {

// [stage][group]: how many tensors of the group are away at once by the programs.
using AwayCounts = std::vector<std::vector<int>>;

AwayCounts MostActivationsAway(const MemoryPlan& memory, const Schedule& schedule) {
  AwayCounts most;
  std::vector<std::vector<std::set<MicrobatchId>>> away;
  for (const StagePlan& stage : memory.stages) {
    most.emplace_back(stage.groups.size());
    away.emplace_back(stage.groups.size());
  }
  const auto back = [&](const Action& action) {
    for (std::set<MicrobatchId>& group : away[action.stage.value]) group.erase(action.microbatch);
  };
  for (const std::vector<Action>& program : schedule.programs) {
    for (const Action& action : program) {
      const bool backward =
          action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput;
      if (backward) back(action);
      if (action.group == kWholeStage ||
          !IsPassing(memory.stages[action.stage.value].groups[action.group.value].group.kind)) {
        continue;
      }
      std::set<MicrobatchId>& group = away[action.stage.value][action.group.value];
      if (action.kind == ActionKind::kSwapOut) group.insert(action.microbatch);
      if (action.kind == ActionKind::kSwapInEnd) group.erase(action.microbatch);
      int& count = most[action.stage.value][action.group.value];
      count = std::max(count, static_cast<int>(group.size()));
    }
  }
  return most;
}

absl::Status CheckRoom(const std::string& holder, Bytes parked, Bytes room) {
  if (room == Bytes(0) || parked <= room) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      holder, " may have to hold ", FormatBytes(parked), " at once; it has ", FormatBytes(room)));
}

}  // namespace

ParkedAtMost ParkedAtMostBy(const PlanningProblem& problem, const DeviceMapping& mapping,
                            const MemoryPlan& memory, const Schedule& schedule) {
  const Topology& topology = problem.topology;
  ParkedAtMost parked;
  parked.with_device.resize(std::max<size_t>(topology.devices.size(),  //
                                             mapping.device_of_worker.size()));
  parked.with_drive.resize(topology.drives.size());
  parked.with_host.resize(static_cast<size_t>(ServerCount(topology)));
  // Of all its replicas.
  const auto devices_of = [&](int worker) {
    std::vector<DeviceId> devices;
    for (int replica = 0; replica < schedule.replicas; ++replica) {
      devices.push_back(mapping.device_of_worker[replica * WorkerCount(schedule) + worker]);
    }
    return devices;
  };
  const auto add_to_host = [&](int worker, Bytes bytes) {
    for (const DeviceId device : devices_of(worker)) {
      parked.with_host[ServerOf(topology, device)] += bytes;
    }
  };
  const AwayCounts activations = MostActivationsAway(memory, schedule);
  const std::vector<int> versions = PeakWeightVersions(schedule);
  for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
    const int worker = schedule.worker_of_stage[stage].value;
    const StagePlan& plan = memory.stages[stage];
    const StageRange& layers = problem.partition.stages[stage];
    for (int layer = layers.begin; layer < layers.end; ++layer) {
      if (!StepsOnHost(plan, layer)) continue;
      const LayerProfile& profile = problem.profile.layers[layer];
      add_to_host(worker, profile.optimizer_state + profile.gradients + profile.shared_gradients);
    }
    for (size_t index = 0; index < plan.groups.size(); ++index) {
      const auto& [group, choice] = plan.groups[index];
      if (StepsOnHost(plan, plan.groups[index])) continue;
      int count = 1;
      if (group.kind == GroupKind::kActivations) count = activations[stage][index];
      if (group.kind == GroupKind::kWeightVersions) count = versions[stage];
      const Bytes whole = RoundUp(group.bytes, problem.granule) * count;
      if (choice.placement == Placement::kHostSwap) add_to_host(worker, whole);
      if (choice.placement == Placement::kNvmeSwap) {
        for (const DeviceId device : devices_of(worker)) {
          parked.with_drive[DriveOf(topology, device)] += whole;
        }
      }
      for (const Stripe& stripe : choice.stripes) {
        parked.with_device[stripe.lender.value] += RoundUp(stripe.bytes, problem.granule) * count;
      }
    }
  }
  return parked;
}

absl::StatusOr<std::vector<Bytes>> PromisedPeaks(const PlanningProblem& problem,
                                                 const DeviceMapping& mapping,
                                                 const MemoryPlan& memory, const Schedule& schedule,
                                                 const StepTimes& times) {
  const Topology& topology = problem.topology;
  ParkedAtMost parked = ParkedAtMostBy(problem, mapping, memory, schedule);
  for (size_t server = 0; server < parked.with_host.size(); ++server) {
    SIPHON_RETURN_IF_ERROR(CheckRoom(HostName(topology, static_cast<int>(server)),
                                     parked.with_host[server], topology.host_memory));
  }
  for (size_t drive = 0; drive < topology.drives.size(); ++drive) {
    SIPHON_RETURN_IF_ERROR(CheckRoom(absl::StrCat("drive ", drive), parked.with_drive[drive],
                                     topology.drives[drive].capacity));
  }
  const auto workers = static_cast<size_t>(WorkerCount(schedule));
  std::vector<Bytes> peaks(workers);
  for (size_t account = 0; account < times.step.peak.size(); ++account) {
    const bool known = account < times.lent.own.size();
    const Bytes own =
        known ? *std::max_element(times.lent.own[account].begin(), times.lent.own[account].end())
              : Total(times.step.peak[account]);
    Bytes& lent = parked.with_device[mapping.device_of_worker[account].value];
    Bytes& peak = peaks[account % workers];
    peak = std::max(peak, own + std::exchange(lent, Bytes(0)));
  }
  for (size_t device = 0; device < topology.devices.size(); ++device) {
    SIPHON_RETURN_IF_ERROR(CheckRoom(absl::StrCat("device ", device), parked.with_device[device],
                                     topology.devices[device].memory));
  }
  return peaks;
}

}  // namespace siphon
