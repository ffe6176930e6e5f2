#ifndef SIPHON_LAUNCH_RUN_JOB_RUN_MACHINE_H_
#define SIPHON_LAUNCH_RUN_JOB_RUN_MACHINE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/plan_costs.h"
#include "launch/profile/worker_problem.h"
#include "launch/run/job/prepare_job.h"
#include "planner/topology.h"

namespace siphon {

// What a job's layers cost, and between which devices it runs: of CUDA workers those of the
// topology that the job names.
struct RunMachine {
  std::optional<Topology> server;  // none: CPU workers, or nothing is said
  PlanCosts costs;
};

// Errors: as LoadJobTopology and LoadPlanCosts.
absl::StatusOr<RunMachine> MachineOf(const PreparedJob& prepared);

// The workers of the job there. Points into all three.
WorkersOfJob WorkersOn(const RunMachine& machine, const PlannedJob& planned,
                       const PreparedJob& prepared);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_RUN_MACHINE_H_
