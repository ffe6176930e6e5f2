#ifndef SIPHON_PLANNER_SECOND_CHOICES_SECOND_CHOICES_H_
#define SIPHON_PLANNER_SECOND_CHOICES_SECOND_CHOICES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/units.h"

namespace siphon {

// `plan.memory` with the second choices of what is swapped. What is with lenders goes to the host;
// if there is no room, activations are computed again, or go to drives like the rest. What is with
// drives likewise goes to the host; what is with the host is computed again, if it is activations,
// or goes to drives. All second choices of what is at one place have to fit at once, as workers
// take them (second_choice_trials.h). What can only go elsewhere is asked before activations. Where
// no such choice fits all groups of a place, each worker takes one that fits for it, or as many of
// its groups as there is room for. What is left, weights on a server without drives above all, goes
// to lenders, into what these have beside their fullest moment (spare_lending.h).
//
// What optimizer steps on the host work on there (StaysForHostStep) has room on drives instead
// (host_room_on_drives.h). Left with none (kKeep) are those for which there is no room anywhere: a
// place that refuses then ends the run.
//
// `peaks`: [worker], what it holds at most by the plan. Requires: the plan is one of the problem's
// and fits. Errors: as Simulate, but for those that a choice is not taken for.
absl::StatusOr<MemoryPlan> WithSecondChoices(const PlanningProblem& problem,
                                             const DeviceMapping& mapping, FollowedPlan plan,
                                             const std::vector<Bytes>& peaks);

// The same for a draft's plan.
absl::Status AddSecondChoices(DraftSimulator& simulator, SimulatedDraft& simulated);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SECOND_CHOICES_SECOND_CHOICES_H_
