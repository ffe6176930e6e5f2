#ifndef SIPHON_PLANNER_DRAFTS_SEARCH_EFFORT_H_
#define SIPHON_PLANNER_DRAFTS_SEARCH_EFFORT_H_

#include <cstdint>

#include "planner/drafts/planning_problem.h"

namespace siphon {

// How many steps `auto` may simulate in a search, beside its starts: by the problem alone, its size
// and PlanningProblem::effort, so that plans are the same on every machine.

inline constexpr int64_t kFewestImprovements = 70;

// In the first search.
int ImprovementsOf(const PlanningProblem& problem);

// Has little time for searches beside the first one.
bool IsLarge(const PlanningProblem& problem);

// How far a search for the best map of workers to devices goes.
struct MapEffort {
  int64_t maps = 0;   // for which it may simulate a draft, each up to twice
  int64_t parts = 0;  // maps of some workers of whose completions it may look for the least step
  int at_once = 1;    // so many of either together, for whoever has threads (MapSearch)
};
// About a second's worth.
MapEffort MapsFor(const PlanningProblem& problem);
// For what all searches have come to, whose proof a plan carries: where the problem is not large,
// its goal the shortest step, and the topology has no more maps than a DGX-1, enough to go through
// all of them.
MapEffort MapsToProve(const PlanningProblem& problem);
// For the draft that searches begin with.
MapEffort MapsAtFirst(const PlanningProblem& problem);
// For a draft that is not what a search has come to: a quarter of the maps of MapsFor, of large
// problems half. Of 80 drafts of host_swap on a DGX-1 three lose 0.2 to 0.4 % of a step to that,
// the others less.
MapEffort MapsForSingle(const PlanningProblem& problem);

// In another one: at most so many; of large problems a part of what the first one may take.
int MoreOf(const PlanningProblem& problem, int most, int part_of_large);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_SEARCH_EFFORT_H_
