#ifndef SIPHON_PLANNER_FIND_DEADLOCK_H_
#define SIPHON_PLANNER_FIND_DEADLOCK_H_

#include "absl/status/status.h"
#include "planner/schedule.h"
#include "planner/schedule_index.h"

namespace siphon {

// kCompute: compute actions wait for each other across workers as if tensors moved by themselves.
// kCommunication: only SEND and RECV wait, in groups under rendezvous semantics (see
// ValidateSchedule).
enum class WaitsFor { kCompute, kCommunication };

// The message of communication at the other end: SEND_F of stage s with RECV_F of stage s + 1, and
// so on.
Action PartnerOf(const Action& communication);

// Runs the programs without time, each worker as far as it gets, until all are done or none can go
// on. Requires: every action that something waits for is in the schedule. Errors:
// FailedPrecondition that tells who waits for whom in the cycle, with the grid. O(actions), given
// that few workers wait for the same one.
absl::Status FindDeadlock(const Schedule& schedule, const ScheduleIndex& index, WaitsFor waits_for);

}  // namespace siphon

#endif  // SIPHON_PLANNER_FIND_DEADLOCK_H_
