#ifndef SIPHON_LAUNCH_PROFILE_BUDGET_SECOND_CHOICES_H_
#define SIPHON_LAUNCH_PROFILE_BUDGET_SECOND_CHOICES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "launch/profile/plan_live_step.h"
#include "planner/memory/memory_kind.h"
#include "planner/memory_plan.h"
#include "planner/units.h"

namespace siphon {

struct BudgetedPlan {
  MemoryPlan memory;
  // [worker]: what it comes to hold at most, by second choices of its own as well, without what it
  // lends for those of others.
  std::vector<Bytes> peak_at_most;
};

// The plan of `live` with the second choices that workers can take whenever they have to, since
// there is room for them beforehand; the others are taken away (kKeep).
//
// Drives: none; a worker has room there for what its plan parks there, and no more. But for what
// stays on the host for optimizer steps there, of the workers for which the drive has room for all
// that the host has for that: it has a file of its own.
//
// What is left with none, and is with the host or on a drive, may go to lenders: into memory that
// these have left beside their fullest moment (planner/second_choices/spare_lending.h).
//
// Host memory: for all that would go there, of all workers at once, beside what is there already;
// where there is not, activations are computed again instead. What a worker holds itself does not
// change when its groups go to another place, since its program does not. Where it computes groups
// again, it may hold more than its plan does only what its capacity leaves: tried for all its
// groups of one tier together, tier by tier and all of them, as they are taken (FallBack). What
// that leaves is lent all the same.
//
// `held_to_recompute`: [worker] as PlanningProblem::held, with the room that computing single
// groups again takes beyond a pass of their stage. Pure. Errors: as the simulator.
absl::StatusOr<BudgetedPlan> BudgetSecondChoices(
    const LiveStep& live, const std::vector<MemoryByKind>& held_to_recompute);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_BUDGET_SECOND_CHOICES_H_
