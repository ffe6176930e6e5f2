#ifndef SIPHON_LAUNCH_RUN_JOB_FIT_MEMORY_H_
#define SIPHON_LAUNCH_RUN_JOB_FIT_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launch/run/job/prepare_job.h"
#include "swap/parking_layout.h"

namespace siphon {

// Makes the plan one that fits into memory.capacity: nothing to do where everything kept fits; else
// what memory.strategy finds (PlanLiveStep), between workers that all have a link to each other and
// share one to the host, or, with topology.throttle, those of the topology. Where memory.plan names
// a file, or the job's parent has planned (SupervisedPlanPath), what that says, whatever else would
// fit; where it would have to be searched for and another process has done so, what that has found.
//
// `schedule_csv` is what ReadScheduleFile gave, `search` as PrepareJob has it. Fills plan_text and
// parking too. Errors: ResourceExhausted when the job does not fit, with the smallest change that
// does; as LoadPlanCosts, ProblemOfJob, LoadPlanInFile and StepInFile.
absl::Status FitMemory(const std::string& schedule_csv, const PlanSearch& search,
                       PreparedJob& prepared);

bool ParksAnything(const std::vector<WorkerParking>& parking);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_FIT_MEMORY_H_
