#ifndef SIPHON_LAUNCH_TOPOLOGY_JOB_TOPOLOGY_H_
#define SIPHON_LAUNCH_TOPOLOGY_JOB_TOPOLOGY_H_

#include <optional>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "planner/topology.h"

namespace siphon {

// The server that topology.source and topology.name of a job mean, topology.servers times; none
// when it names none. A file is one of ours, or what nvidia-smi topo -m or NCCL wrote
// (server_file.h). Errors: InvalidArgument with the key's place in the job file, then that in the
// topology's; for source probe, which WithProbedTopology replaces before; where neither the job nor
// what such a program wrote tells how much memory devices have.
absl::StatusOr<std::optional<Topology>> LoadJobTopology(const JobConfig& job);

// That server with every rate times topology.throttle, which workers hold their links to; none
// with throttle none. Errors: as LoadJobTopology; InvalidArgument at topology.throttle when the job
// names no topology, or a rate would come to nothing.
absl::StatusOr<std::optional<Topology>> LoadThrottledTopology(const JobConfig& job);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_JOB_TOPOLOGY_H_
