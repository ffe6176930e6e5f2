#ifndef SIPHON_PLANNER_LOWER_SCHEDULE_H_
#define SIPHON_PLANNER_LOWER_SCHEDULE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/schedule.h"

namespace siphon {

// Lowering passes: each takes a schedule by value and returns a new one.

// Makes one B of each I that its own W follows at once: the same work, without keeping anything
// between the two.
Schedule MergeBackward(Schedule schedule);

// Inserts SEND right behind the cell that makes a boundary tensor, and RECV into the receiver's
// program, for each boundary between two different workers. All workers advance cell by cell as if
// each took the same time, and a RECV stands where the receiver is at the moment of the SEND, as in
// torch.distributed.pipelining: so there is one order of all messages that every program follows,
// and no program can deadlock, even where a SEND waits for its RECV.
//
// Requires: no communication yet. Errors: FailedPrecondition for an action that is in the way, or
// when the compute actions wait for each other (ValidateSchedule tells who for whom).
// O(cells + workers * length of the longest program).
absl::StatusOr<Schedule> InsertCommunication(Schedule schedule);

// Where workers agree on the norm of all gradients.
enum class NormPlace {
  kBeforeSteps,  // which are scaled by it (clipping), or skipped where it is no number (fp16)
  kBehindSteps,  // it is only reported: no worker waits for the slowest one before it steps
};

// Appends what ends a synchronous training step: REDUCE_GRAD for each stage in
// `stages_with_shared_parameters`, one REDUCE_NORM a worker, one STEP a stage. A STEP that the
// schedule has already, just in time, stays where it is; but a stage that shares parameters steps
// at the end, when the gradients of all uses are there. Stages with UPDATE take no STEP.
Schedule AppendOptimizerStep(Schedule schedule,
                             const std::vector<StageId>& stages_with_shared_parameters,
                             NormPlace norm = NormPlace::kBeforeSteps);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWER_SCHEDULE_H_
