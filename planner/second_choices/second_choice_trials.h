#ifndef SIPHON_PLANNER_SECOND_CHOICES_SECOND_CHOICE_TRIALS_H_
#define SIPHON_PLANNER_SECOND_CHOICES_SECOND_CHOICE_TRIALS_H_

#include "absl/status/statusor.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/simulator/simulate_times.h"

namespace siphon {

// Tries second choices of one plan: takes them as workers would, with the programs that they have,
// and simulates the step within all limits.
class SecondChoiceTrials {
 public:
  // `schedule`: LowerMemoryPlan's for the plan. The problem and the schedule outlive this.
  SecondChoiceTrials(const PlanningProblem& problem, const DeviceMapping& mapping,
                     const Schedule& schedule);

  // Whether the groups that `concerns` names can go their second way all at once: the programs can
  // run so, and there is room everywhere; under LendingRule::kPeaks however long copies take.
  // Requires: `memory` is the schedule's plan, but for second choices; `stripes` has those of them
  // that are kPeerSwap.
  absl::StatusOr<bool> Fit(const MemoryPlan& memory, const ConcernsGroup& concerns,
                           const SecondStripes& stripes = {});

 private:
  absl::StatusOr<bool> HasRoom(const FollowedPlan& taken);

  const PlanningProblem& problem_;
  const DeviceMapping mapping_;
  const Schedule& schedule_;
  SimulationInput input_;
  SimulationSpace space_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SECOND_CHOICES_SECOND_CHOICE_TRIALS_H_
