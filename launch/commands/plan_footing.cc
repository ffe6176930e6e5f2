#include "launch/commands/plan_footing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/topology/job_topology.h"
#include "planner/status.h"

namespace siphon {
namespace {

// As problems of workers have it, whose plans are made for devices in any case.
constexpr absl::string_view kAnyStrategy = "auto";

WorkerMachine MachineOf(const JobConfig& job, absl::string_view strategy) {
  const bool devices = strategy == kLendingStrategy || strategy == kDriveStrategy ||
                       job.memory.host_capacity > Bytes(0) || !job.memory.nvme_directory.empty();
  return devices ? WorkerMachine::kDevices : WorkerMachine::kProcesses;
}

absl::Status CheckLinks(const JobConfig& job, absl::string_view strategy,
                        const std::optional<Topology>& topology) {
  if (strategy != kLendingStrategy || topology.has_value() || job.pipeline.backend == "cpu") {
    return absl::OkStatus();
  }
  return ConfigError(job, "topology.name",
                     absl::StrCat("is missing; ", strategy,
                                  " needs to know the links between devices: write a preset "
                                  "(siphon topology lists them) or a file"));
}

// 0: one of them does not say.
Bytes MemoryOfLargest(const Topology& topology) {
  Bytes largest;
  for (const TopologyDevice& device : topology.devices) {
    if (device.memory == Bytes(0)) return Bytes(0);
    largest = std::max(largest, device.memory);
  }
  return largest;
}

absl::Status CheckCapacities(const JobConfig& job, const PlanFooting& footing) {
  const bool elsewhere = job.pipeline.backend == "cpu" || job.topology.throttle != "none";
  const Bytes asked = LargestCapacity(job);
  if (elsewhere || footing.device_memory == Bytes(0) || asked <= footing.device_memory) {
    return absl::OkStatus();
  }
  return ConfigError(
      job, "memory.capacity",
      absl::StrCat(FormatBytes(asked), " is more than the ", FormatBytes(footing.device_memory),
                   " of a device of ", footing.topology->name,
                   "; write at most that, or a topology.name with larger devices"));
}

// The one that is easier to beat.
LowerBound Lower(LowerBound a, LowerBound b) {
  if (a.cannot_fit.has_value() != b.cannot_fit.has_value()) {
    return a.cannot_fit.has_value() ? b : a;
  }
  return b.step_time < a.step_time ? b : a;
}

}  // namespace

Bytes LargestCapacity(const JobConfig& job) {
  Bytes largest;
  for (const Bytes capacity : job.memory.capacity) largest = std::max(largest, capacity);
  return largest;
}

WorkersOfJob PlanFooting::WorkersOf(const StudiedJob& job) const {
  SIPHON_CHECK(for_workers, "workers train the job as it is planned");
  return {.planned = {job.job, job.model, job.plan, job.schedule_csv},
          .costs = costs.source(),
          .throttled = topology.has_value() ? &*topology : nullptr};
}

absl::StatusOr<PlanFooting> LoadFooting(const StudiedJob& job, const std::string& profile,
                                        const std::string& device, StatedMemory memory) {
  PlanFooting footing{.topology = job.topology};
  const bool other_links = job.topology.has_value() && job.job.topology.throttle == "none";
  footing.for_workers = job.job.pipeline.backend == "cpu" && device.empty() && !other_links;
  if (footing.for_workers) {
    SIPHON_ASSIGN_OR_RETURN(footing.topology, LoadThrottledTopology(job.job));
  }
  const bool of_topology = footing.topology.has_value() && !footing.for_workers;
  if (of_topology) footing.device_memory = MemoryOfLargest(*footing.topology);
  if (memory == StatedMemory::kHolds && device.empty()) {
    SIPHON_RETURN_IF_ERROR(CheckCapacities(job.job, footing));
  }
  SIPHON_ASSIGN_OR_RETURN(
      footing.costs,
      LoadPlanCosts(job.job, of_topology ? &*footing.topology : nullptr, profile, device));
  return footing;
}

absl::StatusOr<JobProblem> ProblemOn(const PlanFooting& footing, const StudiedJob& job,
                                     absl::string_view strategy) {
  SIPHON_RETURN_IF_ERROR(CheckLinks(job.job, strategy, footing.topology));
  std::optional<Topology> with_drives = footing.topology;
  if (with_drives.has_value() && footing.for_workers) {
    KeepDrivesOfWorkers(job.job, strategy, *with_drives);
  }
  const Topology* const topology = with_drives.has_value() ? &*with_drives : nullptr;
  const bool may_want_drive = topology == nullptr || footing.for_workers;
  return ProblemOfJob({job.job, job.model, job.plan, job.schedule_csv},
                      {.costs = footing.costs.source(),
                       .topology = topology,
                       .workers = MachineOf(job.job, strategy),
                       .needs_drive = may_want_drive && strategy == kDriveStrategy});
}

absl::StatusOr<LowerBound> BoundOn(const PlanFooting& footing, const StudiedJob& job,
                                   absl::string_view strategy, const PlanningProblem& problem) {
  if (!footing.for_workers || job.plan.training.replicas > 1) return LowerBoundOf(problem);
  const absl::string_view like = strategy == kDriveStrategy ? strategy : kAnyStrategy;
  SIPHON_ASSIGN_OR_RETURN(const JobProblem still, ProblemOn(footing, job, like));
  SIPHON_ASSIGN_OR_RETURN(LowerBound bound, LowerBoundOf(still.problem));
  SIPHON_ASSIGN_OR_RETURN(const JobProblem moving,
                          RoomiestProblemOfWorkers(footing.WorkersOf(job), like));
  SIPHON_ASSIGN_OR_RETURN(LowerBound other, LowerBoundOf(moving.problem));
  return Lower(std::move(bound), std::move(other));
}

}  // namespace siphon
