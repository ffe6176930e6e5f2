#ifndef SIPHON_PLANNER_STRATEGIES_SEARCH_EFFORT_H_
#define SIPHON_PLANNER_STRATEGIES_SEARCH_EFFORT_H_

#include <cstdint>

#include "planner/strategies/planning_problem.h"

namespace siphon {

// How many steps `auto` may simulate in a search, beside its starts: by the size of the problem
// alone, so that plans are the same on every machine.

inline constexpr int64_t kFewestImprovements = 70;

// In the first search.
int ImprovementsOf(const PlanningProblem& problem);

// Has little time for searches beside the first one.
bool IsLarge(const PlanningProblem& problem);

// For how many maps of workers to devices a search may simulate a draft, each up to twice.
int64_t MapsFor(const PlanningProblem& problem);
inline constexpr int64_t kFewestMaps = 12;
// The same for a draft that is not what a search has come to: a quarter of it. Of 80 drafts of
// host_swap on a DGX-1 three lose 0.2 to 0.4 % of a step to that, the others less.
int64_t MapsForSingle(const PlanningProblem& problem);

// Of how many maps of some workers it may look for the least step of all completions.
int64_t MapPartsFor(const PlanningProblem& problem);

// In another one: at most so many; of large problems a part of what the first one may take.
int MoreOf(const PlanningProblem& problem, int most, int part_of_large);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_SEARCH_EFFORT_H_
