#include "launch/run/job/run_machine.h"

#include "launch/topology/job_topology.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<RunMachine> MachineOf(const PreparedJob& prepared) {
  RunMachine machine;
  if (prepared.job.pipeline.backend == "cuda") {
    SIPHON_ASSIGN_OR_RETURN(machine.server, LoadJobTopology(prepared.job));
  }
  const Topology* const devices = machine.server.has_value() ? &*machine.server : nullptr;
  SIPHON_ASSIGN_OR_RETURN(machine.costs, LoadPlanCosts(prepared.job, devices, "", ""));
  return machine;
}

WorkersOfJob WorkersOn(const RunMachine& machine, const PlannedJob& planned,
                       const PreparedJob& prepared) {
  const std::optional<Topology>& links =
      prepared.throttled.has_value() ? prepared.throttled : machine.server;
  return {.planned = planned,
          .costs = machine.costs.source(),
          .throttled = links.has_value() ? &*links : nullptr};
}

}  // namespace siphon
