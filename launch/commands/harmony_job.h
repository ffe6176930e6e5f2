#ifndef SIPHON_LAUNCH_COMMANDS_HARMONY_JOB_H_
#define SIPHON_LAUNCH_COMMANDS_HARMONY_JOB_H_

#include <string>
#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/strategies/harmony/harmony_search.h"

namespace siphon {

// A job with the stages and the schedule that Harmony's search chose for it.

// What that changes in the job: "section.key=value" each.
std::vector<std::string> HarmonySettings(const HarmonyChoice& choice);

// Takes what layers cost in the changed job, `changed`, and the most that workers hold beside them
// there or in `problem`. Whether that is anything new.
bool TakeFactsOf(const PlanningProblem& changed, PlanningProblem& problem);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_HARMONY_JOB_H_
