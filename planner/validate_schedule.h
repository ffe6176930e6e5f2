#ifndef SIPHON_PLANNER_VALIDATE_SCHEDULE_H_
#define SIPHON_PLANNER_VALIDATE_SCHEDULE_H_

#include "absl/status/status.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

enum class SchedulePurpose { kTraining, kForwardOnly };

// Checks a compute-only or a lowered schedule:
// - coverage: every (stage, microbatch) has exactly one F and, when training, one B (or one I and
// one W); it runs on the
//   worker that holds the stage;
// - order: F before B, F of stage s before F of s + 1, B of stage s + 1 before B of s, I before W
// (compute-only: some
//   interleaving of the programs must satisfy all of it, else it is a deadlock);
// - lowered: every boundary between two workers has one SEND and one RECV for each direction and
// microbatch; messages of
//   one channel (sender, receiver, direction) are received in the order in which they are sent; and
//   the programs finish under rendezvous semantics: consecutive communication actions form one
//   group that is posted together (as with ncclGroupStart/End) and completes only when each of its
//   partners has been posted; nothing behind it starts before;
// - residency: nothing uses activations, or tensor groups of `plan`, that are away
//   (check_residency.h).
//
// Errors: FailedPrecondition; the message is one sentence, then the grid with "<-- here" behind the
// bad cell.
absl::Status ValidateSchedule(const Schedule& schedule, SchedulePurpose purpose,
                              const MemoryPlan& plan = {});

}  // namespace siphon

#endif  // SIPHON_PLANNER_VALIDATE_SCHEDULE_H_
