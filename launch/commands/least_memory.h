#ifndef SIPHON_LAUNCH_COMMANDS_LEAST_MEMORY_H_
#define SIPHON_LAUNCH_COMMANDS_LEAST_MEMORY_H_

#include <optional>
#include <string>
#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// [worker of one replica]: what no plan of the problem's shape can do without on the worker,
// whatever leaves it or is computed again: what it holds all the time, and beside that what one
// layer of the largest pass needs while it is computed. In a moment, where a search takes seconds
// to find nothing.
std::vector<Bytes> LeastMemory(const PlanningProblem& problem);

// "worker 1 needs 354 MiB under any plan, its capacity is 106 MiB": of the worker whose capacity is
// short of LeastMemory by most. None where no worker's is.
std::optional<std::string> WhyNoPlanFits(const PlanningProblem& problem);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_LEAST_MEMORY_H_
