#ifndef SIPHON_LAUNCH_RUN_FIT_MEMORY_H_
#define SIPHON_LAUNCH_RUN_FIT_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/job_problem.h"
#include "launch/profile/measured_costs.h"
#include "launch/profile/plan_live_step.h"
#include "launch/run/prepare_job.h"
#include "swap/parking_layout.h"

namespace siphon {

// Makes the plan one that fits into memory.capacity: nothing to do where everything kept fits;
// else what memory.strategy finds (PlanLiveStep), between workers that all have a link to each
// other and share one to the host, or, with topology.throttle, those of the topology. Where
// memory.plan names a file, what that says, whatever else would fit.
//
// `schedule_csv` is what ReadScheduleFile gave. Fills plan_text and parking too. Errors:
// ResourceExhausted when the job does not fit, with the smallest change that does; as
// LoadPlanCosts, ProblemOfJob, LoadThrottledTopology, LoadPlanInFile and StepInFile.
absl::Status FitMemory(const std::string& schedule_csv, PreparedJob& prepared);

// A step that fits, with what the job's plan says of it when everything is kept.
struct FittingStep {
  LiveStep live;
  PlanText plan;
};

// What a strategy plans for the workers of a job from: by the job's costs, or (not null) by what
// its run was found to take, on the devices that it runs on. Errors: as FitMemory.
absl::StatusOr<JobProblem> ProblemOfWorkers(const PlannedJob& planned, const std::string& strategy,
                                            const MeasuredCosts* measured);

// The strategy's plan. `planned` has everything kept. Errors: ResourceExhausted where it finds
// none; as FitMemory.
absl::StatusOr<FittingStep> PlanFittingStep(const PlannedJob& planned, const std::string& strategy,
                                            const MeasuredCosts* measured);

// The whole plan as its file has it; `whole` is the job's, with everything kept.
absl::StatusOr<PlanText> TextOf(const FittingStep& found, const std::string& strategy,
                                const TrainingPlan& whole);

bool ParksAnything(const std::vector<WorkerParking>& parking);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_FIT_MEMORY_H_
