#ifndef SIPHON_LAUNCH_RUN_FIT_MEMORY_H_
#define SIPHON_LAUNCH_RUN_FIT_MEMORY_H_

#include "absl/status/status.h"
#include "launch/run/prepare_job.h"

namespace siphon {

// Makes the plan one that fits into memory.capacity: nothing to do where everything kept fits;
// else, where memory.strategy allows it, layers whose activations are dropped and computed again,
// as few as it takes (strategy recompute; auto comes to the same until workers can move tensors).
//
// `schedule_csv` is what ReadScheduleFile gave. Fills plan_text too. Errors: ResourceExhausted when
// the job does not fit, with the smallest change that does; as LoadPlanCosts and ProblemOfJob.
absl::Status FitMemory(const std::string& schedule_csv, PreparedJob& prepared);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_FIT_MEMORY_H_
