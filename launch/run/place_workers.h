#ifndef SIPHON_LAUNCH_RUN_PLACE_WORKERS_H_
#define SIPHON_LAUNCH_RUN_PLACE_WORKERS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "planner/ids.h"

namespace siphon {

// [rank]: which worker it is, so that workers whom the plan has in one server are on one host: each
// server is the first host left that has as many ranks, and ranks of a host are its workers in
// order. Errors: FailedPrecondition where no hosts are like the servers; says how many workers each
// has. Pure.
absl::StatusOr<std::vector<WorkerId>> PlaceWorkers(const std::vector<int>& server_of_worker,
                                                   const std::vector<int>& host_of_rank);

// For workers that are all started on this host. Errors: InvalidArgument at topology.servers where
// the job has several.
absl::Status CheckOneServer(const JobConfig& job);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PLACE_WORKERS_H_
