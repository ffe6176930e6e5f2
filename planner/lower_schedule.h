#ifndef SIPHON_PLANNER_LOWER_SCHEDULE_H_
#define SIPHON_PLANNER_LOWER_SCHEDULE_H_

#include "absl/status/statusor.h"
#include "planner/schedule.h"

namespace siphon {

// Lowering passes: each takes a schedule by value and returns a new one.

// Inserts SEND right behind the action that makes a boundary tensor and RECV right before the one
// that needs it, for each boundary between two different workers. Neighbouring SENDs and RECVs form
// a group (see ValidateSchedule), so 1F1B steady state becomes (send forward, receive backward) and
// (send backward, receive forward) pairs. Requires: compute actions only.
absl::StatusOr<Schedule> InsertCommunication(Schedule schedule);

// Appends what ends a synchronous training step: REDUCE_GRAD for each stage in
// `stages_with_shared_parameters`, one REDUCE_NORM a worker, one STEP a stage.
Schedule AppendOptimizerStep(Schedule schedule,
                             const std::vector<StageId>& stages_with_shared_parameters);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWER_SCHEDULE_H_
