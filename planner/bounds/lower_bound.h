#ifndef SIPHON_PLANNER_BOUNDS_LOWER_BOUND_H_
#define SIPHON_PLANNER_BOUNDS_LOWER_BOUND_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/bounds/counting/combinatorial_bound.h"
#include "planner/drafts/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// What no memory plan and no device map of a problem can be faster than, by the simulator's clock.
struct LowerBound {
  Nanos step_time;
  std::string reason;  // the part that binds: "memory of worker 0", "the uplink of switch 1"
  // Why nothing fits, however long the step: "memory of worker 0"; none where that is not proven.
  std::optional<std::string> cannot_fit;
  // Each a bound by itself; the largest is step_time.
  std::vector<BoundPart> parts;
  friend bool operator==(const LowerBound&, const LowerBound&) = default;
};

// The largest of the combinatorial bounds (combinatorial_bound.h) and, where this build has a
// solver and they are not too large, of the linear programs of all moments (moment_program.h) and
// of all windows (window_program.h). The order of the schedule's actions is fixed, and each action
// takes at least its profiled time; with a map in the problem the bound is for that map.
//
// Grows, or stays, when a capacity or a rate shrinks; the same for devices under other numbers. The
// programs' parts are computed in floating point and rounded down to 20 binary digits: the exact
// minima of two problems are ordered so, and their computed values, good to about 12 digits, come
// in another order only when one digit boundary lies between two that agree in all of those. The
// boundaries are shifted so that none lies at a short binary number, where minima of round figures
// are. Nor need they be ordered where a program ends by its limit of work, or where its rows leave
// nothing, as with too little memory for any plan: then it says nothing.
//
// Errors: FailedPrecondition for a schedule whose actions wait for each other in a circle.
// Requires: the problem passes CheckPlanningProblem.
absl::StatusOr<LowerBound> LowerBoundOf(const PlanningProblem& problem);

// The least step time that the rows of the linear program allow when each layer of a stage has one
// choice for all microbatches: an exact optimum of that model, for small problems. Not a bound of
// plans that treat some microbatches otherwise. Errors: as SolveIntegerProgram, and as above;
// ResourceExhausted where `most_nodes` prove none.
absl::StatusOr<Nanos> WholeLayerOptimum(const PlanningProblem& problem, int most_nodes);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_LOWER_BOUND_H_
