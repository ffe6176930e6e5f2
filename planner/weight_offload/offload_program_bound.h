#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_OFFLOAD_PROGRAM_BOUND_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_OFFLOAD_PROGRAM_BOUND_H_

#include "absl/status/statusor.h"
#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/units.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// How much of the search for the minimum of the paper's integer program (section 6) was done.
enum class OffloadSearch {
  kWhole,      // step_time is its minimum
  kStopped,    // after a number of nodes, or in one of them: step_time is what is known of it
  kRelaxation  // only with weights that leave in part
};

struct OffloadProgramBound {
  Nanos step_time;  // no plan is shorter
  OffloadSearch search = OffloadSearch::kRelaxation;
  int nodes = 0;  // linear programs that were solved; 0 where a known plan does not idle
  friend bool operator==(const OffloadProgramBound&, const OffloadProgramBound&) = default;
};

struct OffloadSearchLimits {
  int most_nodes = 1;  // 1: the relaxation
  // The step time of a plan: the program's minimum is not above it, so that a bound that reaches it
  // ends the search. 0: not known.
  Nanos known;
  // For each linear program (SolveLinearProgram): those of Figure 4, of up to 33,148 rows, end
  // within it, after some 5 s at most.
  int64_t most_work = kMostLinearWork * 100;
};

// Theorem 2 of the paper: the minimum of its integer program, or a bound of that minimum. Branches
// over the integers, the smallest bound first; each node's bound is made from the solver's
// multipliers (SafeBound), so that neither its tolerances nor an early stop can make it wrong.
// Times of plans are whole nanoseconds, so it is rounded up to one. Deterministic.
// Requires: a problem that passes CheckWeightOffloadProblem. Errors: Unavailable in a build without
// a solver.
absl::StatusOr<OffloadProgramBound> SolveOffloadProgram(const WeightOffloadProblem& problem,
                                                        const OffloadSearchLimits& limits);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_OFFLOAD_PROGRAM_BOUND_H_
