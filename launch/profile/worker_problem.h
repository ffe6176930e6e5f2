#ifndef SIPHON_LAUNCH_PROFILE_WORKER_PROBLEM_H_
#define SIPHON_LAUNCH_PROFILE_WORKER_PROBLEM_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/job_problem.h"
#include "launch/profile/measured_costs.h"
#include "launch/profile/plan_with_costs.h"
#include "planner/memory/memory_estimate.h"
#include "planner/topology.h"

namespace siphon {

// A job for the CPU workers that run it, with everything kept so far.
struct WorkersOfJob {
  PlannedJob planned;
  CostSource costs;  // a profile or a device: no unit times
  // That of LoadThrottledTopology, to whose rates messages are held, too; null: all workers have a
  // link to each other and share one to the host, and nothing holds them back.
  const Topology* throttled = nullptr;
  // What its run was found to take, on the devices that it runs on; null: that is not known yet.
  const MeasuredCosts* measured = nullptr;
  PlanningGoal goal = PlanningGoal::kShortestStep;  // of plans that are looked for
  int effort = 1;                                   // these two as in PlanningProblem
  int most_effort = 1;
  PlanningNews news = nullptr;   // of the search; none: nobody waits
  SideBySide side_by_side = {};  // as in PlanningProblem
};

// What a strategy plans for the workers of a job from: ProblemOfJob, with what workers take beside
// the planner's figures. Pure. Errors: as ProblemOfJob.
absl::StatusOr<JobProblem> ProblemOfWorkers(const WorkersOfJob& job, absl::string_view strategy);

// The same with less held: what workers take beside it hangs on their plan. Bounds of all
// strategies are made from this one. Pure. Errors: as ProblemOfJob.
absl::StatusOr<JobProblem> RoomiestProblemOfWorkers(const WorkersOfJob& job,
                                                    absl::string_view strategy);

// Of the topology's drives what workers may park on: one of each server, which has
// memory.nvme_directory, or none where neither strategy nor job wants that.
void KeepDrivesOfWorkers(const JobConfig& job, absl::string_view strategy, Topology& topology);

// For plans that take passes apart (TakesPassesApart). The simulator gives a recomputation, and
// each part of a pass that waits for weights, the room that a pass of its whole stage takes for
// itself beside all that it has saved. One of few layers may need more; that much is held all the
// time.
void HoldForSingleLayers(const MemoryInputs& inputs, JobProblem& made);

// Strategies that may compute layers again, or have weights in only while a pass is at their
// layers, beside others.
bool TakesPassesApart(absl::string_view strategy);

// Nothing moves: without a topology, its workers are processes joined by messages.
inline constexpr absl::string_view kRecomputeStrategy = "recompute";

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_WORKER_PROBLEM_H_
