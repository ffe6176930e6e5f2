#include "launch/profile/job_problem.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/profile/planning_profile.h"
#include "planner/lowering/element_state.h"
#include "planner/memory/published_formula.h"
#include "planner/performance/host_adam.h"
#include "planner/round_up.h"
#include "planner/status.h"
#include "swap/device/cuda_module.h"

namespace siphon {
namespace {

// Blocks that devices map memory in; on the CPU a cache line.
constexpr Bytes kDeviceGranule{2 << 20};

// Of a drive that nobody has described. ASSUMED, the order of an NVMe drive in a rented server:
// every process of a job must plan with the same figures, so that nobody measures. A topology's
// file gives those of a drive that is known.
constexpr NvmeDrive kAssumedDrive{.read = BytesPerSecond(1'000'000'000),
                                  .write = BytesPerSecond(1'000'000'000),
                                  .latency = Nanos(100'000)};

void SetDrives(const JobConfig& job, const JobMachine& machine, Topology& topology) {
  const bool wanted = machine.needs_drive || !job.memory.nvme_directory.empty();
  if (wanted && topology.drives.empty()) {
    topology.drives.assign(static_cast<size_t>(ServerCount(topology)), kAssumedDrive);
    for (size_t drive = 0; drive < topology.drives.size(); ++drive) {
      topology.drives[drive].server = static_cast<int>(drive);
    }
  }
  const Bytes limit = job.memory.nvme_capacity;
  if (limit == Bytes(0)) return;
  for (NvmeDrive& drive : topology.drives) {
    const auto drives = static_cast<int64_t>(topology.drives.size()) / ServerCount(topology);
    const Bytes share(limit.value / drives);
    // 0 would be no limit.
    const Bytes most = std::max(share, Bytes(1));
    drive.capacity = drive.capacity == Bytes(0) ? most : std::min(drive.capacity, most);
  }
}

// Whether workers have memory of their own, with a host beside it.
bool OnDevices(const JobConfig& job, const JobMachine& machine) {
  return job.pipeline.backend == "cuda" || machine.topology != nullptr;
}

// What a device has where the job says nothing; 0: not known, or as much as one likes.
Bytes DeviceMemory(const JobConfig& job, const JobMachine& machine) {
  if (machine.topology != nullptr) {
    Bytes smallest;
    for (const TopologyDevice& device : machine.topology->devices) {
      if (device.memory == Bytes(0)) return Bytes(0);
      if (smallest == Bytes(0) || device.memory < smallest) smallest = device.memory;
    }
    return smallest;
  }
  const bool known = OnDevices(job, machine) && machine.costs.device != nullptr;
  return known ? machine.costs.device->capacity : Bytes(0);
}

absl::StatusOr<std::vector<Bytes>> CapacitiesOf(const JobConfig& job, const JobMachine& machine,
                                                int workers) {
  std::vector<Bytes> capacities;
  const Bytes device = DeviceMemory(job, machine);
  if (job.memory.capacity.empty() && device == Bytes(0)) return capacities;
  for (int worker = 0; worker < workers; ++worker) {
    capacities.push_back(
        WorkerCapacity(job, WorkerId(worker)).value_or(device - job.memory.reserve));
    if (capacities.back() > Bytes(0)) continue;
    return ConfigError(job, "memory.reserve",
                       absl::StrCat(FormatBytes(job.memory.reserve), " of a device's ",
                                    FormatBytes(device), " leaves nothing; write less"));
  }
  return capacities;
}

// How many others may have tensors there.
int LinksTo(const Topology& topology, int device) {
  const auto leads_there = [device](const TopologyLink& link) { return link.to.value == device; };
  return static_cast<int>(std::count_if(topology.links.begin(), topology.links.end(), leads_there));
}

absl::StatusOr<Topology> TopologyForJob(const JobConfig& job, const Topology& topology,
                                        int workers) {
  SIPHON_RETURN_IF_ERROR(CheckDevicesOf(topology, job, workers));
  Topology server = topology;
  // What devices without a worker lend.
  for (int index = 0; index < DeviceCount(server); ++index) {
    TopologyDevice& device = server.devices[static_cast<size_t>(index)];
    if (device.memory == Bytes(0)) continue;
    const Bytes contexts = job.pipeline.backend == "cuda"
                               ? kCudaLenderContext * std::min(workers, LinksTo(server, index))
                               : Bytes(0);
    // 0 would be no limit.
    device.memory = std::max(device.memory - job.memory.reserve - contexts, Bytes(1));
  }
  const Bytes limit = job.memory.host_capacity;
  const bool smaller = server.host_memory == Bytes(0) || limit < server.host_memory;
  if (limit > Bytes(0) && smaller) server.host_memory = limit;
  return server;
}

// Where a profile has no rate of copies, and no device is known, copies to the host are free. One
// that has none of tensors has been measured with messages alone.
TransportCosts TransportOf(const PlanText& plan, const CostSource& costs) {
  TransportCosts transport{.latency = plan.link_latency,
                           .rate = plan.link_rate,
                           .host_rate = plan.swap_rate.value > 0 ? plan.swap_rate : plan.copy_rate,
                           .copy_rate = plan.copy_rate,
                           .swap_rate = plan.swap_rate,
                           .room = plan.message_room};
  if (costs.device == nullptr) return transport;
  // A copy within one memory reads and writes it.
  const BytesPerSecond copied(AchievedBandwidth(*costs.device).value / 2);
  const BytesPerSecond link = costs.device->host_link;
  transport.host_rate = link > BytesPerSecond(0) ? link : copied;
  return transport;
}

Nanos DeviceStep(const ModelProfile& profile) {
  Nanos step;
  for (const LayerProfile& layer : profile.layers) step += layer.optimizer;
  return step;
}

void SetHeld(const PlanText& plan, PlanningProblem& problem) {
  for (const PlanWorker& worker : plan.workers) {
    MemoryByKind held;
    held[MemoryKind::kCommunication] = worker.communication;
    problem.held.push_back(held);
  }
}

}  // namespace

Topology TopologyOfWorkers(int workers, const TransportCosts& transport, Bytes host_memory) {
  const bool measured = transport.rate > BytesPerSecond(0);
  Topology topology =
      UniformTopology(workers, measured ? transport.rate : transport.host_rate, transport.latency);
  topology = WithHost(std::move(topology), std::max(workers, 1),
                      {.to_host = transport.host_rate,
                       .from_host = transport.host_rate,
                       .latency = transport.latency});
  topology.name = std::string(kWorkersOfOneMachine);
  topology.host_memory = host_memory;
  return topology;
}

namespace {

// As many workers on each server.
Topology TopologyOfJob(const JobConfig& job, int workers, const TransportCosts& transport) {
  const auto servers = static_cast<int>(job.topology.servers);
  const Topology machine =
      TopologyOfWorkers((workers + servers - 1) / servers, transport, job.memory.host_capacity);
  if (servers == 1) return machine;
  Topology all =
      SeveralServers(machine, servers, {job.topology.network_rate, job.topology.network_latency});
  all.name = absl::StrCat(kWorkersOf, servers, " machines");
  return all;
}

}  // namespace

absl::Status CheckDevicesOf(const Topology& topology, const JobConfig& job, int workers) {
  if (DeviceCount(topology) >= workers) return absl::OkStatus();
  return ConfigError(
      job, "topology.name",
      absl::StrCat(topology.name, " has ", DeviceCount(topology), " devices for ", workers,
                   " workers; plan for fewer pipeline.stages, or on a larger server"));
}

absl::StatusOr<JobProblem> ProblemOfJob(const PlannedJob& planned, const JobMachine& machine) {
  SIPHON_CHECK(machine.costs.profile != nullptr || machine.costs.device != nullptr,
               "a plan of memory is made from times");
  const JobConfig& job = planned.job;
  const TrainingPlan& plan = planned.plan;
  const int workers = WorkerCount(plan.training) * plan.training.replicas;
  if (workers < job.topology.servers) {
    return ConfigError(
        job, "topology.servers",
        absl::StrCat("is ", job.topology.servers, ", and the job has ", workers,
                     workers == 1 ? " worker" : " workers", "; each server has at least one"));
  }
  JobProblem made;
  SIPHON_ASSIGN_OR_RETURN(made.plan, PlanWithCosts(planned, machine.costs));
  SIPHON_ASSIGN_OR_RETURN(MemoryInputs inputs, MemoryInputsOf(planned));
  if (machine.costs.profile != nullptr) inputs.profile = &machine.costs.profile->model;
  SIPHON_ASSIGN_OR_RETURN(ModelProfile times, LayerTimes(planned, machine.costs));
  PlanningProblem& problem = made.problem;
  problem.profile = PlanningProfile(std::move(times), inputs, made.plan.stages);
  problem.partition = plan.partition;
  problem.schedule = plan.training;
  problem.score =
      job.topology.map_score == "swap_time" ? MappingScore::kSwapTime : MappingScore::kStepTime;
  problem.transport = TransportOf(made.plan, machine.costs);
  problem.cores = made.plan.cores_together;
  const bool on_devices = OnDevices(job, machine);
  problem.granule = on_devices ? kDeviceGranule : kCacheLine;
  if (HasStateOfElements(problem.profile)) {
    // A worker on the CPU is on the host.
    problem.host_step =
        on_devices
            ? HostAdamTime(problem.profile, BytesOfParameter(inputs.precision, inputs.moments))
            : DeviceStep(problem.profile);
  }
  SetHeld(made.plan, problem);
  SIPHON_ASSIGN_OR_RETURN(problem.capacity, CapacitiesOf(job, machine, WorkerCount(plan.training)));
  if (machine.topology != nullptr) {
    SIPHON_ASSIGN_OR_RETURN(problem.topology, TopologyForJob(job, *machine.topology, workers));
  } else if (machine.workers == WorkerMachine::kDevices || job.topology.servers > 1) {
    problem.topology = TopologyOfJob(job, workers, problem.transport);
  }
  if (DeviceCount(problem.topology) > 0) SetDrives(job, machine, problem.topology);
  return made;
}

}  // namespace siphon
