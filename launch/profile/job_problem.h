#ifndef SIPHON_LAUNCH_PROFILE_JOB_PROBLEM_H_
#define SIPHON_LAUNCH_PROFILE_JOB_PROBLEM_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/plan_with_costs.h"
#include "planner/drafts/planning_problem.h"
#include "planner/plan_text.h"
#include "planner/topology.h"

namespace siphon {

// How workers of a job without a topology are seen.
enum class WorkerMachine {
  kProcesses,  // joined by messages and one copy engine to the host
  // Each a device that has a link to each other one and shares one uplink to the host: so they can
  // lend to each other, and the host can be full. What a message costs its sender is not seen.
  kDevices,
};

// What a job's plan is made for.
struct JobMachine {
  CostSource costs;                    // a profile or a device: no unit times
  const Topology* topology = nullptr;  // that of the job; none: workers of one machine
  WorkerMachine workers = WorkerMachine::kProcesses;
  bool needs_drive = false;  // even where the job gives no memory.nvme_directory
};

// A job as what a memory plan is made from.
struct JobProblem {
  PlanningProblem problem;
  PlanText plan;  // of the job, with everything kept
};

// Bytes are those of the runtime accounting, layer by layer. A worker may hold memory.capacity less
// memory.reserve; where the job gives no capacity, the memory of the smallest device less
// memory.reserve; on workers of one machine with a CPU backend, anything. Devices without a worker
// lend their memory less memory.reserve. memory.host_capacity limits each server's
// host, memory.nvme_capacity its drives together. Where the job wants a drive and the topology has
// none, there is one of assumed speed.
//
// Pure. Errors: as PlanWithCosts and ProfileFromFirstPrinciples; InvalidArgument at topology.name
// when there are fewer devices than workers, at topology.servers when there are more of them, at
// memory.reserve when it leaves nothing.
absl::StatusOr<JobProblem> ProblemOfJob(const PlannedJob& planned, const JobMachine& machine);

// The workers of one machine as devices (WorkerMachine::kDevices), under this name; of several it
// begins alike. `host_memory` 0: no limit.
inline constexpr absl::string_view kWorkersOfOneMachine = "workers of one machine";
inline constexpr absl::string_view kWorkersOf = "workers of ";  // "workers of 2 machines"
Topology TopologyOfWorkers(int workers, const TransportCosts& transport, Bytes host_memory);

// InvalidArgument where the topology has fewer devices than workers, on topology.name.
absl::Status CheckDevicesOf(const Topology& topology, const JobConfig& job, int workers);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_JOB_PROBLEM_H_
