#ifndef SIPHON_LAUNCH_RUN_VALIDATION_LOSS_H_
#define SIPHON_LAUNCH_RUN_VALIDATION_LOSS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/running_stages.h"
#include "launch/run/seat/coordinate.h"
#include "planner/schedule.h"

namespace siphon {

// Collective: the mean loss per target over the validation batches, behind `step` steps, the same
// on all workers. Errors: as RunningStages::RunBatch and Coordinator::Gather.
absl::StatusOr<double> ValidationLoss(const PreparedJob& prepared, const Schedule& evaluation,
                                      int64_t step, RunningStages& stages,
                                      Coordinator& coordinator);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_VALIDATION_LOSS_H_
