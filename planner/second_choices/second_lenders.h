#ifndef SIPHON_PLANNER_SECOND_CHOICES_SECOND_LENDERS_H_
#define SIPHON_PLANNER_SECOND_CHOICES_SECOND_LENDERS_H_

#include <vector>

#include "absl/status/status.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/second_choices/second_choice_trials.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/units.h"

namespace siphon {

// Lenders as the second choice of groups of `plan` that have none, and can go there, as far as
// these have room (spare_lending.h). As copies to them take other times than planned, that is tried
// with all other second choices of the same place: for all owners, or else for as many as fit.
//
// `peaks`: [worker], what it holds at most by the plan. `trials`: of its schedule. Errors: as the
// simulator.
absl::Status GiveSecondLenders(const PlanningProblem& problem, const DeviceMapping& mapping,
                               const std::vector<Bytes>& peaks, SecondChoiceTrials& trials,
                               FollowedPlan& plan);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SECOND_CHOICES_SECOND_LENDERS_H_
