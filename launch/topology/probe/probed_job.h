#ifndef SIPHON_LAUNCH_TOPOLOGY_PROBED_JOB_H_
#define SIPHON_LAUNCH_TOPOLOGY_PROBED_JOB_H_

#include <functional>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "launch/topology/probe/probe_server.h"

namespace siphon {

// Where nothing is kept of this machine's devices and driver yet.
enum class UnknownServer { kMeasure, kRefuse };

// A job with topology.source probe, as one with the topology file that the probe of this machine
// keeps, so that all who read the job have the same figures; any other job as it is. Devices are
// asked in a process that ends, so that this one has no context on them.
// Errors: InvalidArgument at topology.source, in one line: there are no devices, or what was
// measured cannot be kept.
absl::StatusOr<JobConfig> WithProbedTopology(
    JobConfig job, UnknownServer unknown,
    const std::function<absl::StatusOr<ProbeSources>()>& sources = ProbeSourcesHere);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_PROBED_JOB_H_
