#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_FOOTING_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_FOOTING_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/commands/study_job.h"
#include "launch/profile/job_problem.h"
#include "launch/profile/plan_costs.h"
#include "launch/profile/worker_problem.h"
#include "planner/bounds/lower_bound.h"
#include "planner/topology.h"

namespace siphon {

// What every plan, bound and change of a job is costed by, whatever the strategy: the same layers'
// times and the same links.
struct PlanFooting {
  PlanCosts costs;
  // For CPU workers, which are no topology's devices: the links that they are held to, if any.
  std::optional<Topology> topology;
  // Whether `siphon train` plans the job with these costs: for workers on CPUs, whose links are
  // their machine's, or held to the topology's rates.
  bool for_workers = false;
  // What the largest of the topology's devices has, where the workers are planned to be these, and
  // it says so of each; else 0. No worker there has more.
  Bytes device_memory = Bytes(0);

  // Points into this and `job`. Requires: for_workers.
  WorkersOfJob WorkersOf(const StudiedJob& job) const;
};

// Whether no worker may have more (memory.capacity) than devices of the topology are said to have.
enum class StatedMemory { kHolds, kIsExceeded };

// `profile` and `device` as for LoadPlanCosts. Errors: as LoadPlanCosts and LoadThrottledTopology;
// InvalidArgument at memory.capacity where it is more than PlanFooting::device_memory. Not where
// workers may be elsewhere than they are looked at: on CPUs, on `device`, or on devices whose links
// are throttled to the topology's.
absl::StatusOr<PlanFooting> LoadFooting(const StudiedJob& job, const std::string& profile,
                                        const std::string& device,
                                        StatedMemory memory = StatedMemory::kHolds);

// The most that memory.capacity allows a worker; 0 where it is not given.
Bytes LargestCapacity(const JobConfig& job);

// The job with everything kept so far. Where it has no topology, workers are devices as far as
// something hangs on it: a strategy that lends, a host that can be full, or a drive. Errors: as
// ProblemOfJob; InvalidArgument at topology.name where the strategy needs links that it lacks.
absl::StatusOr<JobProblem> ProblemOn(const PlanFooting& footing, const StudiedJob& job,
                                     absl::string_view strategy);

// What no strategy's plan of the job can beat. `problem` is that of ProblemOn. For workers, whose
// plans are made from problems that set more or less aside: the same for all strategies that need
// no drive of their own. Errors: as LowerBoundOf and ProblemOfJob.
absl::StatusOr<LowerBound> BoundOn(const PlanFooting& footing, const StudiedJob& job,
                                   absl::string_view strategy, const PlanningProblem& problem);

// It alone needs links between workers.
inline constexpr absl::string_view kLendingStrategy = "d2d_swap";
// It alone needs a drive.
inline constexpr absl::string_view kDriveStrategy = "nvme_swap";

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_FOOTING_H_
